/** The frame of all pages, and the page to sign in. */
export const shell = {
  pages: {
    overview: "Overview",
    products: "Products",
    devices: "Devices",
    firmware: "Firmware",
    jobs: "Jobs",
    scenes: "Scenes",
    gateways: "Gateways",
    mesh: "Mesh networks",
    events: "Events",
    subscriptions: "Subscriptions",
    keys: "Access keys",
    projects: "Projects",
    audit: "Audit log"
  },
  signIn: {
    title: "Sign in",
    key: "Access key",
    keyHint: "It begins with dck_. The server prints where the first one is when it starts.",
    submit: "Sign in",
    note: "The key is exchanged for a cookie that ends after 12 hours, when you sign out, or with the key.",
    ended: "Your session has ended. Sign in again to go on where you were."
  }
}
