/**
 * The groups of the API that the actions of an access key may name
 * (docs/api/projects.md#scopes-and-addresses).
 */
import type { InputIssue } from "@device-cloud/core"
import { Context, Effect } from "effect"
import { HttpApi } from "effect/http-api"
import { Api } from "../DeviceCloudApi.ts"
import { Authorization } from "../middleware/Authorization.ts"
import { isScoped } from "../middleware/KeyScope.ts"
import type { AnyApi } from "../middleware/RouteTable.ts"

/** Those with routes that need a key. */
export const groupsOf = (api: AnyApi): ReadonlyArray<string> => {
  const groups = new Set<string>()
  HttpApi.reflect(api as HttpApi.Top, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group, middleware }) => {
      const needsKey = [...middleware].some(({ key }) => key === Authorization.key)
      if (needsKey && isScoped(endpoint.path)) groups.add(group.identifier)
    }
  })
  return [...groups]
}

/** Those of this API, and of one that is served beside it. */
export const Groups = Context.Reference<ReadonlyArray<string>>("@device-cloud/http/ScopeGroups", {
  defaultValue: () => groupsOf(Api)
})

/** Makes a function that finds the actions of no group. */
export const makeCheck = Effect.map(
  Groups,
  (groups) => (actions: ReadonlyArray<string>): ReadonlyArray<InputIssue> =>
    actions.flatMap((action, i) =>
      groups.includes(action.slice(0, action.lastIndexOf(":")))
        ? []
        : [{ path: ["scopes", "actions", i], message: `Expected one of the groups ${groups.join(", ")}` }]
    )
)
