/**
 * A cloud that admits devices over MQTT with TLS by tokens, by client
 * certificates, and by signatures.
 */
import { DeviceCloud, DeviceCredentials } from "@device-cloud/core"
import { type DevelopmentCertificate, MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Effect, Layer, type Redacted } from "effect"
import * as DeviceCertificate from "./DeviceCertificate.ts"
import * as DeviceToken from "./DeviceToken.ts"

export interface Options {
  /** The key that signs tokens. */
  readonly tokenKey: Redacted.Redacted
  /** The authority of the factory as PEM. */
  readonly factoryAuthority: string
  /** The certificate of the broker. */
  readonly certificate: DevelopmentCertificate.ServerCertificate
}

/** The provers of this application, asked in this order. A device that none of them knows needs a signature. */
const credentials = (tokenKey: Redacted.Redacted) =>
  Layer.effect(
    DeviceCredentials,
    Effect.map(DeviceToken.prover(tokenKey), (tokens) => [tokens, DeviceCertificate.prover])
  )

/** The whole cloud. Its broker listens on a free port of this machine. */
export const layer = ({ certificate, factoryAuthority, tokenKey }: Options) =>
  MqttServer.layer({
    host: "127.0.0.1",
    tls: { ...certificate, port: 0, clientAuthorities: factoryAuthority }
  }).pipe(
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provide(credentials(tokenKey)),
    Layer.provide(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer)
  )
