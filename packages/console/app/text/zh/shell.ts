import type { Texts } from "../text.ts"

export const shell: Texts["shell"] = {
  pages: {
    overview: "总览",
    products: "产品",
    devices: "设备",
    firmware: "固件",
    jobs: "任务",
    scenes: "场景",
    gateways: "网关",
    mesh: "Mesh 网络",
    events: "事件",
    subscriptions: "订阅",
    keys: "访问密钥",
    projects: "项目",
    audit: "审计日志"
  },
  signIn: {
    title: "登录",
    key: "访问密钥",
    keyHint: "以 dck_ 开头。服务器启动时会显示第一个密钥所在的位置。",
    submit: "登录",
    note: "密钥将换成一个 Cookie,12 小时后、退出登录时或密钥失效时结束。",
    ended: "会话已结束。请重新登录，之后会回到原来的页面。"
  }
}
