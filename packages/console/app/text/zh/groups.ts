import type { Texts } from "../text.ts"

export const groups: Texts["groups"] = {
  create: "新建分组",
  caption: "项目的设备分组",
  toAll: "全部分组",
  empty: "还没有设备分组",
  emptyBody: "批量命令、升级活动和远程配置都可以针对分组。",
  group: "分组",
  groupId: "分组 ID",
  groupIdHint: "分组页面地址中的数字",
  choose: "选择分组",
  kind: "类型",
  kinds: { static: "静态", dynamic: "动态" },
  kindHints: {
    static: "包含手动加入的设备。",
    dynamic: "包含查询时符合条件的设备。"
  },
  reported: "上报值（JSON）",
  reportedHint: "须选择产品。布尔值为 0 或 1。",
  members: "分组中的设备",
  noDevices: "分组中目前没有设备。",
  add: "添加设备",
  addTo: "加入分组",
  added: (count) => `已添加 ${count} 台设备`,
  takeOut: "移出分组",
  takeOutTitle: (count, name) => `将 ${count} 台设备移出“${name}”？`,
  takeOutBody: "设备会保留，可以重新加入。",
  removeTitle: (name) => `删除分组“${name}”？`,
  removeBody: (count) => `其中的 ${count} 台设备会保留，但不再记录分组关系。`
}
