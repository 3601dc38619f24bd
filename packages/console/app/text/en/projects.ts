/** Projects and their quotas. */
export const projects = {
  lead: "Each project has its own products, devices, scenes and keys; nothing of one reaches another.",
  create: "New project",
  caption: "Projects of the cloud",
  id: "Project id",
  current: "this one",
  quotas: "Quotas",
  quotasOf: (name: string) => `Quotas of ${name}`,
  quota: "Quota",
  used: "Used",
  limit: "Limit",
  share: "Share",
  limitHint: "Empty: the default again",
  change: "Change quotas",
  quotaNames: {
    products: "Products",
    devices: "Devices",
    device_groups: "Device groups",
    access_keys: "Access keys",
    scenes: "Scenes",
    jobs: "Jobs",
    subscriptions: "Subscriptions",
    object_bytes: "Uploaded files",
    registrations_per_minute: "Registrations a minute by one product secret"
  },
  removeTitle: (name: string) => `Delete the project “${name}”?`,
  removeBody: (products: string, keys: string) =>
    `It must have no products (now ${products}). All of its access keys (${keys}) end at once; its audit log stays.`
}
