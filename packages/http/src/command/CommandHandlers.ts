/**
 * Handlers of the routes of commands.
 */
import { Broadcasts, type Command, CommandNotFound, Commands, Mac, rawTopic, type Waited } from "@device-cloud/core"
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { group } from "../ApiHandlers.ts"
import type { Message } from "./CommandApi.ts"

/** Implements the group `commands`. */
export const layer = group(
  Api,
  "commands",
  Effect.fnUntraced(function*(handlers) {
    const broadcasts = yield* Broadcasts
    const commands = yield* Commands
    const mac = yield* Mac
    return handlers.handleAll({
      setDeviceProperties: ({ params, payload, request }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            commands.request(projectId, params.device_id, null, payload.params, optionsOf(mac, request, payload)),
            answered
          )
        ),
      callDeviceService: ({ params, payload, request }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            commands.request(
              projectId,
              params.device_id,
              params.service_id,
              payload.params,
              optionsOf(mac, request, payload)
            ),
            answered
          )
        ),
      sendUserMessage: ({ params, payload: body, request }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { encoding = "utf8", payload, topic } = body
          const options = optionsOf(mac, request, body)
          return respond(
            commands.sendUserMessage(projectId, params.device_id, { topic, payload, encoding }, options),
            answered
          )
        }),
      broadcast: ({ params, payload: { encoding = "utf8", payload, topic } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(broadcasts.send(projectId, params.product_key, { topic, payload, encoding }))
        ),
      sendRaw: ({ params, payload: { data, ttl } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(commands.sendRaw(projectId, params.device_id, data, { ttl }), accepted)
        ),
      listMessages: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => commands.list(projectId, params.device_id, page), message)
        ),
      getMessage: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            Effect.flatMap(
              messageIdOf(params.message_id),
              (messageId) => commands.get(projectId, params.device_id, messageId)
            ),
            message
          )
        ),
      cancelMessage: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          done(
            Effect.flatMap(
              messageIdOf(params.message_id),
              (messageId) => commands.cancel(projectId, params.device_id, messageId)
            )
          )
        )
    })
  })
)

const message = (command: Command): typeof Message.Type => ({
  message_id: String(command.messageId),
  type: typeOf(command),
  service_id: command.serviceId ?? "",
  topic: command.userTopic ?? "",
  params: command.params,
  state: command.state,
  deliveries: command.deliveries,
  code: command.code,
  message: command.message,
  data: command.data,
  created_at: dateText(command.createdAt),
  expires_at: dateText(command.expiresAt),
  updated_at: dateText(command.updatedAt)
})

const typeOf = ({ serviceId, userTopic }: Command) => {
  if (userTopic !== null) return userTopic === rawTopic ? "raw" : "user"
  return serviceId === null ? "property" : "service"
}

/**
 * A call with an Idempotency-Key that comes again, because its caller has not waited
 * for the device, is the same command.
 */
const optionsOf = (
  mac: Mac["Service"],
  { headers, url }: Pick<HttpServerRequest.HttpServerRequest, "headers" | "url">,
  { ttl, wait, ...payload }: { readonly ttl?: number | undefined; readonly wait?: number | undefined }
) => {
  const key = headers["idempotency-key"]
  const origin = key === undefined
    ? undefined
    : `request ${mac.sign("hmacsha256", key, `${url}\n${JSON.stringify({ ttl, wait, ...payload })}`)}`
  return { ttl, wait, origin }
}

const answered = ({ command, hasWaited }: Waited) => ({
  ...accepted(command),
  ...hasWaited ? { state: command.state, code: command.code, message: command.message, data: command.data } : {}
})

const accepted = ({ messageId }: Command) => ({ message_id: String(messageId) })

/** Fails with `CommandNotFound` when the text is no positive number below 2^53: no message has such an id. */
const messageIdOf = (text: string) => {
  const messageId = /^\d{1,16}$/.test(text) ? Number(text) : 0
  return messageId > 0 && Number.isSafeInteger(messageId)
    ? Effect.succeed(messageId)
    : Effect.fail(new CommandNotFound({ messageId: text }))
}
