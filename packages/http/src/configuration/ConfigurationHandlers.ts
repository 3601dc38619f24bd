/**
 * Handlers of the routes of remote configurations.
 */
import {
  type Configuration,
  type ConfigurationDraft,
  type ConfigurationProgress,
  Configurations,
  type DeviceId,
  type DeviceNotFound,
  type ProductKey,
  type ProductNotFound,
  type ProjectId
} from "@device-cloud/core"
import { Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { makeObjectAddress } from "../object/ObjectAddress.ts"
import type { ConfigurationInfo } from "./ConfigurationApi.ts"

/** Implements the group `configurations`. */
export const layer = group(
  Api,
  "configurations",
  Effect.fnUntraced(function*(handlers) {
    const configurations = yield* Configurations
    const addressOf = yield* makeObjectAddress

    /** What a product, and what a device cannot be missing. */
    const product = (productKey: ProductKey) => ({
      scope: { productKey },
      refine: <A, E, R>(effect: Effect.Effect<A, E | DeviceNotFound, R>) =>
        effect as Effect.Effect<A, Exclude<E, DeviceNotFound>, R>
    })
    const device = (deviceId: DeviceId) => ({
      scope: { deviceId },
      refine: <A, E, R>(effect: Effect.Effect<A, E | ProductNotFound, R>) =>
        effect as Effect.Effect<A, Exclude<E, ProductNotFound>, R>
    })
    const put =
      (projectId: ProjectId, scope: ReturnType<typeof product | typeof device>["scope"]) =>
      (draft: ConfigurationDraft) => configurations.put(projectId, scope, draft, addressOf)

    return handlers.handleAll({
      putProductConfiguration: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = product(params.product_key)
          return respond(refine(put(projectId, scope)(payload)), info)
        }),
      listProductConfigurations: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = product(params.product_key)
          return respond(refine(configurations.versions(projectId, scope)), all)
        }),
      deleteProductConfiguration: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = product(params.product_key)
          return done(refine(configurations.remove(projectId, scope)))
        }),
      pushProductConfiguration: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = product(params.product_key)
          return done(refine(configurations.push(projectId, scope)))
        }),
      pushGroupConfiguration: ({ params: { group_id } }) =>
        CurrentPrincipal.use(({ projectId }) => done(configurations.pushToGroup(projectId, group_id))),
      listConfigurationProgress: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => configurations.progress(projectId, params.product_key, page), progress)
        ),
      putDeviceConfiguration: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = device(params.device_id)
          return respond(refine(put(projectId, scope)(payload)), info)
        }),
      listDeviceConfigurations: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = device(params.device_id)
          return respond(refine(configurations.versions(projectId, scope)), all)
        }),
      deleteDeviceConfiguration: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = device(params.device_id)
          return done(refine(configurations.remove(projectId, scope)))
        }),
      pushDeviceConfiguration: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => {
          const { refine, scope } = device(params.device_id)
          return done(refine(configurations.push(projectId, scope)))
        })
    })
  })
)

const info = (configuration: Configuration): typeof ConfigurationInfo.Type => ({
  configuration_id: configuration.configurationId,
  version: configuration.version,
  format: configuration.format,
  content: configuration.content,
  size: configuration.size,
  sha256: configuration.sha256,
  url: configuration.url,
  created_at: dateText(configuration.createdAt)
})

const all = (configurations: ReadonlyArray<Configuration>) => ({ results: configurations.map(info) })

const progress = ({ at, configurationId, deviceId, state }: ConfigurationProgress) => ({
  device_id: deviceId,
  configuration_id: configurationId,
  state,
  at: dateText(at)
})
