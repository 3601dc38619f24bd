import { plural } from "./plural.ts"

/** Mesh networks. */
export const mesh = {
  lead: "Bluetooth mesh networks, their keys and the addresses of their nodes.",
  create: "New mesh network",
  none: "No mesh networks",
  noneHint: "Create one, and add gateways and sub-devices to it by the API.",
  caption: "Mesh networks of the project",
  title: (key: string) => `Mesh network ${key}…`,
  networkKey: "Network key",
  appKey: "Application key",
  keyHint: "32 hex digits. If it is empty, the cloud makes one.",
  hidden: "Hidden: a viewer reads no keys",
  nextGateway: "Next address of a gateway",
  nextSubDevice: "Next address of a sub-device",
  picture: "Network",
  pictureLabel: "The gateways of the network inside, its nodes around",
  signs: { online: "online", offline: "offline", unactive: "new" },
  nodes: "Nodes of the network",
  noNodes: "No nodes yet",
  noNodesHint: "Gateways and sub-devices are added over the API, each with its signature.",
  reload: "Read again",
  address: "Address",
  kind: "Kind",
  kinds: { 1: "Sub-device", 2: "Gateway" } as Readonly<Record<number, string>>,
  joined: "Added",
  removeNodeTitle: (name: string) => `Delete ${name} from the network?`,
  removeNodeBody: "Its address becomes free. The device itself stays.",
  removeTitle: "Delete this mesh network?",
  removeBody: (nodes: string) =>
    `Its keys and the addresses of ${plural(nodes, "node")} are gone for ever. The devices stay.`,
  send: "Send bytes",
  sendSubmit: "Send",
  sendBody: "Each gateway of the network that is connected gets them once. At least one must be connected.",
  bytes: "Bytes",
  bytesHint: "1 to 512 bytes in hex, for example d1 01 ff",
  sent: "Sent"
}
