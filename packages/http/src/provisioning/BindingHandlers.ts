/**
 * Handlers of the routes of binding.
 */
import { Bindings } from "@device-cloud/core"
import { Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"

/** Implements the group `bindings`. */
export const layer = group(
  Api,
  "bindings",
  Effect.fnUntraced(function*(handlers) {
    const bindings = yield* Bindings
    return handlers.handleAll({
      getBindRandom: ({ params: { device_name, product_key } }) =>
        CurrentPrincipal.use(({ projectId }) => respond(bindings.random(projectId, product_key, device_name), toData)),
      createBindRandom: ({ params: { device_name, product_key } }) =>
        CurrentPrincipal.use(({ projectId }) => respond(bindings.expect(projectId, product_key, device_name), toData))
    })
  })
)

const toData = (random: string) => ({ random })
