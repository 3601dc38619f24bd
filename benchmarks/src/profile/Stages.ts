/**
 * The stages of an operation: what a function belongs to by the file that it stands in.
 */

export const stages = [
  "system calls",
  "TLS",
  "sockets",
  "HTTP",
  "packet",
  "topic",
  "JSON",
  "signature",
  "access and audit",
  "schemas",
  "uplink",
  "model",
  "shadow",
  "scenes",
  "commands",
  "presence",
  "memory storage",
  "SQL text",
  "driver",
  "PostgreSQL",
  "reply",
  "Effect",
  "garbage collection",
  "other threads",
  "other"
] as const

export type Stage = typeof stages[number]

export interface Frame {
  readonly functionName: string
  /** As {@link fileOf} shortens it. */
  readonly file: string
}

/** Shortens a URL to the file from its package: `core/uplink/Uplink`, `effect/internal/effect`, `node:net`. */
export const fileOf = (url: string): string =>
  url.replace(/^.*\/(?:packages|node_modules)\//, "").replace(/^(.*?)\/(?:dist|src)\//, "$1/").replace(/\.[cm]?js$/, "")

/** Functions of Node that do little else than call the kernel, whose time is measured apart. */
const kernelCalls = new Set([
  "writeBuffer",
  "writev",
  "writeUtf8String",
  "writeLatin1String",
  "shutdown",
  "close",
  "setNoDelay",
  "getpeername",
  "getsockname",
  "readStart",
  "readStop",
  "reset"
])

/** The first that fits `file function` decides. */
const table: ReadonlyArray<readonly [Stage, RegExp]> = [
  ["reply", /^alink\/AlinkMessage encode|^mqtt\/(session\/UnsentOutput|protocol\/(PublishPacket|TurnWrites))/],
  ["reply", /^http\/(Envelope|ApiHandlers|PreparedFile)/],
  ["reply", /^node:_http_outgoing|^effect\/http\/(HttpServerResponse|HttpBody)/],
  ["reply", /^@effect\/platform-node\/NodeHttpServer (writeResponse|handleResponse)/],
  ["JSON", /^alink\/AlinkMessage|^core\/kernel\/Json|(^| )JSON\./],
  ["topic", /^alink\/Topic|^mqtt\/session\/(Topic|Subscriptions)|^(qlobber|aedes-persistence)\//],
  ["TLS", /^node:_?tls|^mqtt\/HandshakeTurns/],
  ["packet", /^(mqtt|aedes|mqtt-packet|mqemitter|fastparallel|fastseries|fastfall|reusify|bl|readable-stream)\//],
  ["packet", /^alink\/ConnectPacket/],
  ["signature", /^core\/provisioning|^platform-node\/NodeMac|^node:internal\/crypto|^alink\//],
  [
    "access and audit",
    /^core\/(project|audit|AuditedStores|idempotency)|^http\/middleware\/.*(Audit|Auth|Key|Caller|Credential)/
  ],
  ["schemas", /^effect\/(Schema|schema|internal\/schema)|^core\/kernel\/(InvalidInput|DomainError)/],
  ["model", /^core\/(thing-model|codec)/],
  ["shadow", /^core\/(shadow|history)|^core\/uplink\/(DeviceState|ChangeTracker|methods)/],
  ["scenes", /^core\/scene/],
  ["commands", /^core\/(command|bulk)/],
  ["presence", /^core\/(connection|gateway|cluster|mesh|ota|job|configuration|device)/],
  ["memory storage", /^storage-memory\//],
  ["SQL text", /^storage-pg\/|^effect\/sql\//],
  ["driver", /^@effect\/sql-pg\//],
  ["uplink", /^core\//],
  ["HTTP", /^(http|platform-node|@effect\/platform-node)\/|^node:(_http|url|internal\/url)|^effect\/(http|http-api)\//],
  ["Effect", /^effect\//],
  ["sockets", /^node:/]
]

/** A stage, the kernel's part of {@link Stage}s, or nothing: the thread sleeps or is in no function that is known. */
export type Place = Stage | "kernel" | "outside"

/** Returns where the time of a function belongs. Built-in functions belong to `caller`. */
export const placeOf = ({ file, functionName }: Frame, caller: Place): Place => {
  if (functionName === "(garbage collector)") return "garbage collection"
  if (functionName.startsWith("(") && file === "" && functionName !== "(anonymous)") return "outside"
  if (file === "") return kernelCalls.has(functionName) ? "kernel" : caller
  return table.find(([, pattern]) => pattern.test(`${file} ${functionName}`))?.[0] ?? "other"
}
