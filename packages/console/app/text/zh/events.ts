import type { Texts } from "../text.ts"

export const events: Texts["events"] = {
  lead: "实时显示项目中发生的事情。",
  types: {
    status: "上下线",
    takeover: "连接被取代",
    property: "属性",
    event: "设备事件",
    reply: "命令回复",
    upgrade: "升级",
    lifecycle: "设备的创建与删除",
    topology: "网关拓扑",
    scene: "场景"
  },
  type: "类型",
  subject: "对象",
  content: "内容",
  caption: "事件,最新的在前",
  pause: "暂停",
  resume: "继续",
  waiting: (count) => `已暂停,有 ${count} 个新事件等待显示。`,
  dropped: (count) => `暂停期间丢弃了 ${count} 个较早的事件。`,
  rate: (count) => `每秒 ${count} 个事件`,
  clear: "清空",
  emptyTitle: "还没有事件",
  emptyBody: "设备上报数据或状态变化后会立即显示在这里。"
}
