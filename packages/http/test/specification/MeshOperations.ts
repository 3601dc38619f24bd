/**
 * Mesh networks.
 */
import { meshNetwork, oneOf } from "./Fields.ts"
import { hmac, type Input, type Operation } from "./Operation.ts"

/** A node, signed by its device. */
export const meshNode = (
  sign_method: "hmacsha1" | "hmacmd5",
  [product_key, device_name, secret]: readonly [string, string, string],
  fields: Readonly<Record<string, unknown>>
): Input => {
  const sign = hmac(sign_method, String(secret), `deviceName${device_name}productKey${product_key}`)
  return { body: { product_key, device_name, sign_method, sign, ...fields } }
}

export const mesh: ReadonlyArray<Operation> = [
  {
    method: "POST",
    path: "/mesh/networks",
    body: { network_key: "string", app_key: "string" },
    calls: () => [{ body: {} }, { body: { network_key: "", app_key: "" } }, { body: { app_key: "0".repeat(32) } }],
    data: { network_key: "string", app_key: "string" }
  },
  { method: "GET", path: "/mesh/networks/{network_key}", data: meshNetwork },
  { method: "DELETE", path: "/mesh/networks/{network_key}" },
  {
    method: "POST",
    path: "/mesh/networks/{network_key}/nodes",
    body: {
      product_key: "string",
      device_name: "string",
      sign: "string",
      sign_method: oneOf("hmacsha1", "hmacmd5", "aescmac"),
      mesh_addr: "int",
      node_type: oneOf(1, 2)
    },
    required: ["product_key", "device_name", "sign", "sign_method", "node_type"],
    calls: ({ device_name, device_secret, product_key }) => [
      meshNode("hmacsha1", [product_key, device_name, device_secret], { node_type: 1, mesh_addr: 0x0100 })
    ],
    refuses: [
      [{ mesh_addr: 1 }, "mesh_addr"],
      [{ mesh_addr: 0x00ff }, "mesh_addr"],
      [{ mesh_addr: 0x8000 }, "mesh_addr"],
      [{ mesh_addr: 0x0100, node_type: 2 }, "mesh_addr"]
    ]
  },
  {
    method: "POST",
    path: "/mesh/networks/{network_key}/nodes",
    on: { network_key: "empty_network_key" },
    calls: ({ gateway_name, gateway_product_key, gateway_secret }) => [
      meshNode("hmacmd5", [gateway_product_key, gateway_name, gateway_secret], { node_type: 2 })
    ]
  },
  {
    method: "DELETE",
    path: "/mesh/networks/{network_key}/nodes/{device_id}",
    on: { device_id: "gateway_id" }
  },
  {
    method: "POST",
    path: "/mesh/networks/{network_key}/raw-data",
    body: { raw_data: "string" },
    required: ["raw_data"],
    calls: () => [{ body: { raw_data: "d101FF" } }, { body: { raw_data: "00".repeat(512) } }],
    connected: "gateway_id",
    refuses: ["", "0", "000", "00".repeat(513), "zz"].map((raw_data) => [{ raw_data }, "raw_data"] as const)
  }
]
