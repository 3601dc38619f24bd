/**
 * Where a message of the cloud goes, and how it is written (docs/protocol/topics.md).
 */
import { type DownlinkMessage, rawMethod, sessionErrorMethod, upgradeMethod, userMethod } from "@device-cloud/core"
import {
  encodeControl,
  encodeRequest,
  encodeSessionError,
  encodeUpgrade,
  encodeUserMessage,
  type Payload
} from "./AlinkMessage.ts"
import type { Owner } from "./TopicOwner.ts"
import {
  extendedRrpcTopic,
  methodPrefix,
  methodToTopic,
  rrpcTopic,
  sessionErrorTopic,
  shadowTopic,
  upgradeTopic,
  userCallTopic,
  userTopicPrefix
} from "./TopicRouter.ts"

export interface Downlink {
  readonly topic: string
  readonly payload: Payload
  /** Topics in place of `topic` for a device that has subscribed to one of them; others may not know them. */
  readonly callTopics?: ReadonlyArray<string>
}

/** Returns the topic and the payload of a message to a device. */
export const downlinkOf = (message: DownlinkMessage, device: Owner): Downlink => {
  if (message.bytes !== undefined) {
    return { topic: methodToTopic(methodPrefix(device), rawMethod), payload: Buffer.from(message.bytes) }
  }
  switch (message.method) {
    case "thing.shadow":
      return { topic: shadowTopic(device), payload: encodeControl(message) }
    case upgradeMethod:
      return { topic: upgradeTopic(device), payload: encodeUpgrade(message) }
    case sessionErrorMethod:
      return { topic: sessionErrorTopic(device), payload: encodeSessionError(message) }
    case userMethod: {
      const { payload, topic } = encodeUserMessage(message)
      return message.synchronous === true
        ? { topic: userCallTopic(device, message.id, topic), payload }
        : { topic: userTopicPrefix(device) + topic, payload }
    }
    default: {
      const prefix = methodPrefix(device)
      const topic = methodToTopic(prefix, message.method)
      return {
        topic,
        payload: encodeRequest(message),
        ...message.synchronous === true
          ? { callTopics: [rrpcTopic(prefix, message.id), extendedRrpcTopic(message.id, topic)] }
          : {}
      }
    }
  }
}
