/**
 * The limits of fields, and the filters of lists.
 */
interface Limit {
  readonly method: string
  readonly path: string
  readonly field: string
  readonly takes: ReadonlyArray<unknown>
  readonly refuses: ReadonlyArray<unknown>
}

/** So many bytes of text. */
export const bytes = (length: number) => "r".repeat(length)

export const limits: ReadonlyArray<Limit> = [
  {
    method: "POST",
    path: "/mesh/networks",
    field: "network_key",
    takes: [""],
    refuses: ["0".repeat(31), "0".repeat(33), "g".repeat(32)]
  },
  {
    method: "POST",
    path: "/products/{product_key}/ota/firmwares",
    field: "version",
    takes: ["0.0.0", "10.20.30"],
    refuses: ["1", "1.0", "v1.0.0", "1.0.x", "1..0", ""]
  },
  { method: "POST", path: "/products/{product_key}/ota/firmwares", field: "algorithms", takes: [1], refuses: [0, 2] },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/verify-task",
    field: "upgrade_type",
    takes: [1],
    refuses: [0, 2]
  },
  {
    method: "POST",
    path: "/ota/firmwares/{firmware_id}/upgrade-tasks",
    field: "scope_mode",
    takes: [1],
    refuses: [-1, 2]
  },
  {
    method: "POST",
    path: "/products/{product_key}/batch-things",
    field: "num",
    takes: [1, 10_000],
    refuses: [0, -1, 10_001]
  },
  {
    method: "PUT",
    path: "/things/{device_id}/topo",
    field: "params.timeout",
    takes: [1, 3600, 0, undefined],
    refuses: [-1, 3601]
  },
  {
    method: "POST",
    path: "/auth/register/device",
    field: "random",
    takes: [bytes(5), bytes(20), "é".repeat(10), "éé1"],
    refuses: [bytes(4), bytes(21), "", "é".repeat(11), "éé"]
  },
  {
    method: "POST",
    path: "/auth/generator/device",
    field: "random",
    takes: [bytes(5), bytes(20), "é".repeat(10)],
    refuses: [bytes(4), bytes(21), "", "é".repeat(11)]
  },
  {
    method: "POST",
    path: "/auth/generator/device",
    field: "device_name",
    takes: ["Abc123", "a".repeat(20), "012345"],
    refuses: ["Abc12", "a".repeat(21), "", "abc-123", "abc_123", "abc 123", "abcdéf", "abc123\n"]
  },
  {
    method: "POST",
    path: "/thing-uplink",
    field: "random",
    takes: [bytes(8), bytes(16), "a b&c=d%"],
    refuses: [bytes(7), bytes(17), ""]
  },
  { method: "GET", path: "/things", field: "page", takes: ["1", "1000"], refuses: ["0", "-1", "1.5", "one", ""] },
  { method: "GET", path: "/things", field: "page_size", takes: ["1", "100"], refuses: ["0", "-1", "101", "ten", ""] },
  { method: "GET", path: "/products", field: "page", takes: ["1", "1000"], refuses: ["0", "-1", "1.5", "one", ""] },
  { method: "GET", path: "/products", field: "page_size", takes: ["1", "100"], refuses: ["0", "-1", "101", "ten", ""] }
]

/** Filters of lists, each of which nothing fits. */
export const filters: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["/things", ["product_key=unknown", "batch_id=9007199254740991"]],
  ["/rule-engine/scenes", ["name=unknown"]],
  ["/ota/firmwares", ["product_key=unknown", "name=unknown"]],
  [
    "/ota/firmwares/{firmware_id}/upgrade-tasks",
    ["status=3", "task_id=9007199254740991", "product_key=unknown", "name=unknown"]
  ]
]
