/**
 * Handlers of the routes of codecs.
 */
import {
  type CodecMessage,
  type CodecResult,
  Codecs,
  type CodecTrial,
  InvalidInput,
  type StoredCodec
} from "@device-cloud/core"
import { Effect, type Schema } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"

/** Implements the group `codecs`. */
export const layer = group(
  Api,
  "codecs",
  Effect.fnUntraced(function*(handlers) {
    const codecs = yield* Codecs
    return handlers.handleAll({
      getCodec: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => respond(codecs.get(projectId, params.product_key), stored)),
      putCodec: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(codecs.put(projectId, params.product_key, payload.codec), stored)
        ),
      deleteCodec: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(codecs.remove(projectId, params.product_key))),
      tryCodec: ({ params, payload: { codec, direction, hex, message } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            Effect.flatMap(
              inputOf(hex, message),
              (input) => codecs.tryOut(projectId, params.product_key, { direction, codec, input })
            ),
            ({ hex, message }: CodecResult) => ({ hex, message })
          )
        )
    })
  })
)

const stored = ({ description, updatedAt, version }: StoredCodec) => ({
  codec: description as Readonly<Record<string, Schema.Json>> | null,
  version,
  updated_at: dateText(version === 0 ? null : updatedAt)
})

const inputOf = (
  hex: string | undefined,
  message: CodecMessage | undefined
): Effect.Effect<CodecTrial["input"], InvalidInput> => {
  if (hex !== undefined && message === undefined) return Effect.succeed({ hex })
  if (message !== undefined && hex === undefined) return Effect.succeed({ message })
  return Effect.fail(new InvalidInput({ issues: [{ path: ["hex"], message: "Expected either hex or message" }] }))
}
