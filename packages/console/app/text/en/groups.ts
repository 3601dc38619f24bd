/** Groups of devices. */
export const groups = {
  create: "New group",
  caption: "Groups of the project",
  toAll: "All groups",
  empty: "No groups yet",
  emptyBody: "Bulk commands, campaigns and configurations can go to a group.",
  group: "Group",
  groupId: "Id of the group",
  groupIdHint: "The number in the address of its page",
  choose: "Choose a group",
  kind: "Kind",
  kinds: { static: "static", dynamic: "dynamic" },
  kindHints: {
    static: "It has the devices that were added to it.",
    dynamic: "It has the devices for which its query holds at the moment somebody asks."
  },
  reported: "Reported values as JSON",
  reportedHint: "Needs a product. A bool is 0 or 1.",
  members: "Devices of the group",
  noDevices: "No device is in the group now.",
  add: "Add devices",
  addTo: "Add to a group",
  added: (count: number) => count === 1 ? "One device added" : `${count} devices added`,
  takeOut: "Take out",
  takeOutTitle: (count: number, name: string) =>
    count === 1 ? `Take one device out of “${name}”?` : `Take ${count} devices out of “${name}”?`,
  takeOutBody: "The devices stay, and can be added again.",
  removeTitle: (name: string) => `Delete the group “${name}”?`,
  removeBody: (count: string) => `Its devices (${count}) stay. Which they were is forgotten.`
}
