/**
 * Handler of the route of Bluetooth identities.
 */
import { BleIdentities } from "@device-cloud/core"
import { Effect } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { respond } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import { toCamelCase } from "../SnakeCase.ts"

/** Implements the group `ble`. */
export const layer = group(
  Api,
  "ble",
  Effect.fnUntraced(function*(handlers) {
    const identities = yield* BleIdentities
    return handlers.handle(
      "checkBleIdentity",
      ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(identities.check(projectId, params.product_key, toCamelCase(payload)), (ble_key) => ({ ble_key }))
        )
    )
  })
)
