/**
 * Where the devices of a server connect, and whom they trust there.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import { Flag } from "effect/cli"
import { unreadable, usage } from "./CommandFailure.ts"
import { isLoopback, localFolder } from "./Server.ts"

/** The flags of commands that connect as devices do. */
export const endpointFlags = {
  mqtt: Flag.String("mqtt").pipe(
    Flag.withDescription("Where devices connect; default mqtts://HOST:8883, with the host of the server"),
    Flag.optional
  ),
  ca: Flag.String("ca").pipe(
    Flag.withDescription(
      `A file (PEM) with the authority that devices trust; default: those of Node.js, or ${localFolder}/tls/ca.pem of a server that was started in this folder`
    ),
    Flag.optional
  )
}

/** Where devices connect. */
export interface MqttEndpoint {
  readonly url: string
  /** PEM; undefined: the authorities that Node.js trusts. */
  readonly ca: string | undefined
}

/** The endpoint that the flags name, or that goes with the server. */
export const mqttEndpoint = Effect.fnUntraced(function*(
  serverUrl: string,
  { ca, mqtt }: { readonly ca: Option.Option<string>; readonly mqtt: Option.Option<string> }
) {
  const url = Option.getOrElse(mqtt, () => `mqtts://${new URL(serverUrl).hostname}:8883`)
  if (!URL.canParse(url) || !/^(mqtts?|wss?):$/.test(new URL(url).protocol)) {
    return yield* usage(`--mqtt must be an address such as mqtts://${new URL(serverUrl).hostname}:8883, not ${url}`)
  }
  const fs = yield* FileSystem.FileSystem
  const { join } = yield* Path.Path
  if (Option.isSome(ca)) {
    const text = yield* Effect.mapError(fs.readFileString(ca.value), unreadable(ca.value))
    return { url, ca: text } satisfies MqttEndpoint
  }
  const local = isLoopback(serverUrl)
    ? yield* Effect.option(fs.readFileString(join(localFolder, "tls", "ca.pem")))
    : Option.none()
  return { url, ca: Option.getOrUndefined(local) } satisfies MqttEndpoint
})
