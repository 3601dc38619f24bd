/**
 * `device-cloud doctor`: what is wrong with this set-up.
 */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { failure } from "./CommandFailure.ts"
import * as Checks from "./DoctorChecks.ts"
import { endpointFlags, mqttEndpoint } from "./Endpoints.ts"
import * as Output from "./Output.ts"
import { target } from "./Server.ts"

const marks = { ok: "ok     ", warning: "warning", failed: "FAILED " } as const

/** Makes the command; `version` is that of this program. */
export const doctorCommand = (version: string) =>
  Command.make(
    "doctor",
    endpointFlags,
    Effect.fnUntraced(function*(flags) {
      const { key, keyFrom, url } = yield* target
      const endpoint = yield* mqttEndpoint(url, flags)
      const reachable = yield* Checks.reachable(url)
      // Nothing else of the server can be found out when it is not there.
      const others = reachable.status === "failed" ? [] : yield* Effect.all([
        Checks.ready(url),
        Checks.clock(url),
        Checks.accessKey(url, key, keyFrom),
        Checks.versions(url, version),
        Checks.webSocket(url)
      ])
      const findings = [
        reachable,
        ...url.startsWith("https:") ? [yield* Checks.certificate(url)] : [],
        ...others,
        yield* Checks.mqtt(endpoint)
      ]
      if (!(yield* Output.json(findings))) {
        for (const { check, detail, status } of findings) {
          yield* Console.log(`${marks[status]}  ${check.padEnd(11)}  ${Output.cell(detail)}`)
        }
      }
      const failed = findings.filter(({ status }) => status === "failed").length
      if (failed > 0) return yield* failure(failed === 1 ? "One check has failed." : `${failed} checks have failed.`)
    })
  ).pipe(
    Command.withDescription(
      "Find out what is wrong with this set-up: whether the server is there and ready, whether clocks agree, what the key may do, whether devices can connect."
    ),
    Command.withShortDescription("Find out what is wrong with this set-up")
  )
