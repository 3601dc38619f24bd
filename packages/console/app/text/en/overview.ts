/** The overview. */
const words = (texts: Readonly<Record<string, string>>) => texts

export const overview = {
  lead: "How the project is now, and how it was.",
  devices: (total: string) => `Devices: ${total}`,
  byStatus: "Devices by status",
  disabled: "disabled",
  has: "What there is, and what is under way",
  products: "Products",
  upgrades: "Upgrades under way",
  scenes: "Scenes that are on",
  executions: "Scenes being carried out",
  bulkCommands: "Bulk commands under way",
  jobs: "Jobs under way",
  noDevices: "No devices yet",
  connect: "Connect the first device",
  connectHint: "Connect a device, and see here how it is.",
  createProduct: "Create a product",
  createProductHint: "Devices belong to products: create a product first.",
  attention: "What needs attention",
  attentionOf: (count: string) => `What needs attention (${count})`,
  allWell: "Nothing. All is well.",
  kinds: words({
    device_flapping: "Flapping device",
    device_refused: "Refused reports",
    upgrade_stuck: "Stuck upgrade",
    scene_failing: "Failing scene",
    subscription_failing: "Failing webhook",
    access_key_expires: "Key expires",
    quota_nearly_used: "Quota"
  }),
  quotas: words({
    access_keys: "Access keys",
    device_groups: "Device groups",
    devices: "Devices",
    jobs: "Jobs",
    object_bytes: "Stored bytes",
    products: "Products",
    registrations_per_minute: "Registrations per minute",
    scenes: "Scenes",
    subscriptions: "Subscriptions"
  }),
  sentences: {
    flapping: (count: number) => `changed its status ${count} times within an hour`,
    refused: (count: number, code: string) =>
      `${
        count === 1 ? "1 message was" : `${count} messages were`
      } refused in the last hour, the latest with code ${code}`,
    stuck: (count: number, waits: string) =>
      `${
        count === 1 ? "1 device has" : `${count} devices have`
      } not ended, and nothing has moved for an hour; it waits for ${waits}`,
    waits: words({
      confirmation: "the application's confirmation",
      stage: "the next stage to be opened",
      window: "its time window",
      devices: "the devices"
    }),
    scene: (count: number, status: string) =>
      `${count === 1 ? "1 execution" : `${count} executions`} failed in the last hour: the latest ${status}`,
    executions: words({ failed: "failed", loop: "ran in a circle", limited: "exceeded a limit" }),
    subscription: (count: number) => `does not take events, ${count === 1 ? "1 attempt" : `${count} attempts`}`,
    paused: "is paused, because it does not take events",
    expires: "ends",
    quota: (used: string, limit: string) => `${used} of ${limit} used`
  },
  activity: "Activity",
  span: "How far back",
  spans: { hour: "Hour", day: "Day", week: "Week", month: "Month" },
  plots: {
    devices: "Devices online",
    messages: "Messages per second",
    commands: "Commands per second",
    scenes: "Scenes carried out"
  },
  perSecond: "/s",
  online: "Online",
  accepted: "Accepted",
  refused: "Refused",
  replied: "Carried out",
  failed: "Failed",
  expired: "Expired",
  succeeded: "Succeeded",
  failures: "Failures by code",
  noFailures: "No failures in this time.",
  what: "What",
  whats: { message: "Message of a device", command: "Command" },
  code: "Code",
  codes: words({ no_reply: "the device has not answered", codec: "the codec does not fit", other: "other codes" }),
  count: "Count",
  target: "Target",
  progress: "Progress",
  noUpgrades: "No upgrade is under way.",
  newest: (shown: string, total: string) => `The newest ${shown} of ${total}`,
  servers: "Servers and storage",
  server: "Server",
  nodeStatus: words({ steady: "steady", starting: "starting", draining: "about to end", silent: "not heard" }),
  connections: "Connections",
  started: "Started",
  heard: "Last heard",
  storage: "Storage",
  reachable: "reachable",
  unreachable: "not reachable",
  unknown: "not known",
  latency: (millis: string) => `answers in ${millis} ms`
}
