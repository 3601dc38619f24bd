/**
 * Connections of Device Cloud to NATS: what its adapters to NATS have in common.
 */
export { checkUrl, connect, type ConnectionOptions, NatsUnreachable } from "./Connection.ts"
