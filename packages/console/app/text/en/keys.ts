/** Access keys. */
export const keys = {
  lead: "Programs and people reach the project with these keys.",
  create: "New access key",
  caption: "Access keys of the project",
  role: "Role",
  roleHints: {
    viewer: "A viewer reads, and sees no secrets.",
    operator: "An operator changes devices, products and scenes.",
    admin: "An admin also manages access keys.",
    owner: "An owner also manages projects."
  },
  expires: "Ends",
  expiresHint: "Without a date, it ends with the key with which you are signed in.",
  limits: { products: "Only these products", actions: "Only these operations", addresses: "Only from these addresses" },
  limitHints: {
    products: "Product keys, one on each line",
    actions: "For example devices:read or history:write, one on each line",
    addresses: "Addresses or networks, for example 192.0.2.0/24, one on each line"
  },
  lastUsed: "Last used",
  yours: "this session",
  only: (products: number, actions: number, addresses: number) =>
    `Only ${
      [
        products > 0 && (products === 1 ? "1 product" : `${products} products`),
        actions > 0 && (actions === 1 ? "1 group of operations" : `${actions} groups of operations`),
        addresses > 0 && (addresses === 1 ? "from 1 address" : `from ${addresses} addresses`)
      ].filter(Boolean).join(", ")
    }`,
  shownOnce: "This is the only time that the key is shown. Copy it now.",
  newKey: "The new key",
  removeTitle: (name: string) => `Delete the access key “${name}”?`,
  removeBody: "Programs that use it are refused within a second. Streams and sessions that began with it end.",
  cascade: (count: string, areMore: boolean) =>
    `Also delete all keys that come from it: ${areMore ? `${count} at least` : count}`,
  adminsOnly: "Only admins see the keys of a project.",
  empty: "No access keys"
}
