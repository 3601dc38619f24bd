/**
 * What an access key that is limited to products sees of the events of their
 * devices (docs/api/projects.md#scopes-and-addresses): scenes and topologies span
 * products, and the gateway of a device may be of another one.
 */
import type { DomainEvent } from "@device-cloud/core"
import { Struct } from "effect"

/** Whether an event of this kind tells of other devices, too. */
export const tellsOfOthers = (kind: DomainEvent["_tag"]): boolean =>
  kind === "TopologyChanged" || kind === "SceneExecuted"

/** The same event, without the gateway that carries the connection. */
export const withoutGateway = <Event extends DomainEvent>(event: Event): Event =>
  "link" in event && event.link?.gateway !== undefined
    ? { ...event, link: Struct.omit(event.link, ["gateway"]) }
    : event
