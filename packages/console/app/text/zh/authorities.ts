import type { Texts } from "../text.ts"

export const authorities: Texts["authorities"] = {
  register: "注册证书机构",
  caption: "项目的证书机构",
  empty: "没有证书机构",
  emptyBody: "云端签发第一张证书时会自动创建一个。若工厂自行签发证书，请注册它的证书机构。",
  own: "云端自有",
  states: { pending: "待验证", active: "有效" },
  until: "有效期至",
  crl: "吊销列表",
  revoked: (count) => `${count} 张证书，签发于`,
  certificate: "证书",
  verify: "验证",
  sendCrl: "更新吊销列表",
  hints: {
    new: "证书机构的证书。证明您可以使用其密钥之后生效。",
    verification: "请让该机构签发一张以此为通用名（CN）的证书，并提交：",
    crl: "它会替换之前的列表：列表中的证书被吊销，不在列表中的恢复有效。"
  },
  removeTitle: (name) => `删除证书机构“${name}”？`,
  removeBody: "它签发的所有设备证书都会被删除，使用这些证书的连接会断开。"
}
