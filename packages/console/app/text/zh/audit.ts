import type { Texts } from "../text.ts"

export const audit: Texts["audit"] = {
  lead: "谁修改了什么、读取了哪些密钥、哪些请求被拒绝。",
  adminsOnly: "只有管理员可以查看审计日志。",
  caption: "审计记录，最新的在前",
  key: "访问密钥",
  action: "操作",
  actionHint: "products.createProduct",
  resource: "资源",
  resourceHint: "ID",
  address: "来源地址",
  request: "请求",
  result: "结果",
  carriedOut: "已执行",
  refused: (code) => `已拒绝，${code}`,
  server: "服务器自身",
  start: "开始时间",
  end: "结束时间",
  older: "更早的记录",
  newest: "回到最新",
  exportCsv: "导出 CSV",
  empty: "没有符合条件的记录"
}
