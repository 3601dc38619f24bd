/** The events of the project, live. */
export const events = {
  lead: "What happens in the project, as it happens.",
  types: {
    status: "Presence",
    takeover: "Connections replaced",
    property: "Properties",
    event: "Events of devices",
    reply: "Replies to commands",
    upgrade: "Upgrades",
    lifecycle: "Devices created and deleted",
    topology: "Gateways",
    scene: "Scenes"
  },
  type: "Type",
  subject: "About",
  content: "Content",
  caption: "Events, the newest first",
  pause: "Pause",
  resume: "Resume",
  waiting: (count: string) => `Paused. ${count} new events wait.`,
  dropped: (count: string) => `${count} older ones were dropped while the list was paused.`,
  rate: (count: string) => `${count} ${count === "1" ? "event" : "events"} a second`,
  clear: "Clear",
  emptyTitle: "No events yet",
  emptyBody: "As soon as a device reports or changes its state, it is here."
}
