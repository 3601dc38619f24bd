/**
 * What devices say over MQTT: topics, payloads, and the fields of CONNECT
 * (docs/protocol). Every transport that carries MQTT reads and writes them here.
 *
 * - `ConnectPacket`: what a device says about itself when it connects.
 * - `ownerOf`, `makeRouter`: whose a topic is, and what a message on it wants.
 * - `decode`, `encodeReply`: the messages of devices, and the replies to them.
 * - `downlinkOf`: the messages of the cloud.
 */
export { type AlinkRequest, bytesOf, decode, encodeReply, type Payload, unreadable } from "./AlinkMessage.ts"
export * as ConnectPacket from "./ConnectPacket.ts"
export { crc16 } from "./Crc16.ts"
export { type Downlink, downlinkOf } from "./Downlink.ts"
export { broadcastTopic, isBroadcastFilter, type Owner, ownerKey, ownerOf } from "./TopicOwner.ts"
export {
  makeRouter,
  methodPrefix,
  methodToTopic,
  type Route,
  type Router,
  shadowTopic,
  userCallTopic,
  userTopicPrefix
} from "./TopicRouter.ts"
