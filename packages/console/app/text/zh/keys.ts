import type { Texts } from "../text.ts"

export const keys: Texts["keys"] = {
  lead: "程序和人员通过这些密钥访问项目。",
  create: "新建访问密钥",
  caption: "项目的访问密钥",
  role: "角色",
  roleHints: {
    viewer: "只读角色可以查看，但看不到任何密钥内容。",
    operator: "操作员可以修改设备、产品和场景。",
    admin: "管理员还可以管理访问密钥。",
    owner: "所有者还可以管理项目。"
  },
  expires: "到期时间",
  expiresHint: "不填写时，与当前登录所用的密钥同时到期。",
  limits: { products: "仅限这些产品", actions: "仅限这些操作", addresses: "仅限这些来源地址" },
  limitHints: {
    products: "每行一个产品密钥（ProductKey）",
    actions: "例如 devices:read 或 history:write，每行一个",
    addresses: "地址或网段，例如 192.0.2.0/24，每行一个"
  },
  lastUsed: "最近使用",
  yours: "当前会话",
  only: (products, actions, addresses) =>
    `仅限 ${
      [
        products > 0 && `${products} 个产品`,
        actions > 0 && `${actions} 组操作`,
        addresses > 0 && `${addresses} 个来源地址`
      ].filter(Boolean).join("、")
    }`,
  shownOnce: "密钥只显示这一次，请立即复制。",
  newKey: "新密钥",
  removeTitle: (name) => `删除访问密钥“${name}”？`,
  removeBody: "使用它的程序会在一秒内被拒绝，由它建立的事件流和会话也会结束。",
  cascade: (count, areMore) => `同时删除由它创建的所有密钥：${areMore ? "至少 " : ""}${count} 个`,
  adminsOnly: "只有管理员可以查看项目的密钥。",
  empty: "没有访问密钥"
}
