/**
 * `device-cloud init`: puts a server and an access key into the configuration file.
 */
import { Console, Effect, Option, Redacted, Stdio } from "effect"
import { Command, Flag, Prompt } from "effect/cli"
import { HttpClient, HttpClientRequest } from "effect/http"
import { explain, failure, isApiFailure, usage } from "./CommandFailure.ts"
import * as ConfigFile from "./ConfigFile.ts"
import { Key, Profile, Url } from "./GlobalFlags.ts"
import { checkKey, isLoopback, localFolder, localKey, localUrl, notOfTheApi, parseUrl } from "./Server.ts"

export const initCommand = Command.make(
  "init",
  {
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Overwrite a profile that is there, without a question"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ force }) {
    const asks = yield* (yield* Stdio.Stdio).stdinIsTerminal
    const profile = Option.getOrElse(yield* Profile, () => ConfigFile.defaultProfile)
    const before = (yield* ConfigFile.load).get(profile)

    const flagUrl = Option.getOrUndefined(yield* Url)
    const proposed = before?.url ?? localUrl
    const url = yield* parseUrl(
      flagUrl || (asks ? yield* Prompt.run(Prompt.String({ message: `Server (${proposed})` })) : "") || proposed
    )
    const key = Option.getOrUndefined(yield* Key) ?? (isLoopback(url) ? yield* localKey : undefined) ??
      (asks ? yield* Prompt.run(Prompt.Password({ message: "Access key" })) : undefined)
    if (key === undefined) return yield* usage("There is no access key: pass --key")
    yield* checkKey(key, "your input")

    yield* check(url, key)
    if (before !== undefined && !force && (before.url !== url || before.key !== Redacted.value(key))) {
      const overwrite = asks &&
        (yield* Prompt.run(Prompt.Confirm({ message: `Overwrite the profile ${profile}, now ${before.url}?` })))
      if (!overwrite) return yield* failure(`The profile ${profile} is there already, for ${before.url}: pass --force`)
    }
    const file = yield* ConfigFile.save(profile, url, key)
    yield* Console.log(`${url} is the profile ${profile} of ${file}.`)
  })
).pipe(
  Command.withDescription(
    `Keep a server and an access key in the configuration file, which you alone can read. Asks for what the flags do not say; the key of a server that was started in this folder is found in ${localFolder}.`
  ),
  Command.withShortDescription("Keep a server and its access key")
)

/** Fails unless the server takes the key. */
const check = Effect.fnUntraced(function*(url: string, key: Redacted.Redacted) {
  const http = yield* HttpClient.HttpClient
  const response = yield* http.execute(
    HttpClientRequest.bearerToken(HttpClientRequest.get(`${url}/openapi/v1/products?page_size=1`), key)
  ).pipe(Effect.mapError(explain(url)))
  if (response.status >= 500) return yield* failure(`${url} answers with status ${response.status}: try again later`)
  const body = yield* Effect.mapError(response.json, () => notOfTheApi(url, response.status))
  if (!isApiFailure(body)) return yield* notOfTheApi(url, response.status)
  if (response.status === 401) return yield* failure(`${url} refuses the key: ${body.message}`)
})
