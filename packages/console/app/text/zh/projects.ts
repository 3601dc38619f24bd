import type { Texts } from "../text.ts"

export const projects: Texts["projects"] = {
  lead: "每个项目都有自己的产品、设备、场景和密钥，项目之间完全隔离。",
  create: "新建项目",
  caption: "云上的项目",
  id: "项目 ID",
  current: "当前项目",
  quotas: "配额",
  quotasOf: (name) => `${name} 的配额`,
  quota: "配额",
  used: "已用",
  limit: "上限",
  share: "占用",
  limitHint: "留空则恢复默认值",
  change: "修改配额",
  quotaNames: {
    products: "产品",
    devices: "设备",
    device_groups: "设备分组",
    access_keys: "访问密钥",
    scenes: "场景",
    jobs: "作业",
    subscriptions: "订阅",
    object_bytes: "上传的文件",
    registrations_per_minute: "单个产品密钥每分钟的注册数"
  },
  removeTitle: (name) => `删除项目“${name}”？`,
  removeBody: (products, keys) =>
    `它有 ${products} 个产品，须先全部删除。它的 ${keys} 个访问密钥会立即失效；审计日志会保留。`
}
