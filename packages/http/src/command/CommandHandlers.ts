/**
 * Handlers of the routes of commands.
 */
import { type Command, CommandNotFound, Commands } from "@device-cloud/core"
import { Effect } from "effect"
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
    const commands = yield* Commands
    return handlers.handleAll({
      setDeviceProperties: ({ params, payload: { ttl, ...payload } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(commands.setProperties(projectId, params.device_id, payload.params, { ttl }), accepted)
        ),
      callDeviceService: ({ params, payload: { ttl, ...payload } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            commands.callService(projectId, params.device_id, params.service_id, payload.params, { ttl }),
            accepted
          )
        ),
      sendUserMessage: ({ params, payload: { encoding = "utf8", payload, topic, ttl } }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            commands.sendUserMessage(projectId, params.device_id, { topic, payload, encoding }, { ttl }),
            accepted
          )
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
  type: command.userTopic !== null ? "user" : command.serviceId === null ? "property" : "service",
  service_id: command.serviceId ?? "",
  topic: command.userTopic ?? "",
  params: command.params,
  state: command.state,
  code: command.code,
  message: command.message,
  data: command.data,
  created_at: dateText(command.createdAt),
  expires_at: dateText(command.expiresAt),
  updated_at: dateText(command.updatedAt)
})

const accepted = ({ messageId }: Command) => ({ message_id: String(messageId) })

/** Fails with `CommandNotFound` when the text is no positive number below 2^53: no message has such an id. */
const messageIdOf = (text: string) => {
  const messageId = /^\d{1,16}$/.test(text) ? Number(text) : 0
  return messageId > 0 && Number.isSafeInteger(messageId)
    ? Effect.succeed(messageId)
    : Effect.fail(new CommandNotFound({ messageId: text }))
}
