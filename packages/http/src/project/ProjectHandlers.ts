/**
 * Handlers of the routes of projects and access keys.
 */
import { type AccessKey, AccessKeys, expiresSoon, type Project, Projects } from "@device-cloud/core"
import { Clock, DateTime, Effect, Redacted } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { invalidParameter } from "../Failure.ts"
import { group } from "../ApiHandlers.ts"
import type { AccessKeyRecord, ProjectRecord } from "./ProjectApi.ts"
import * as ScopeGroups from "./ScopeGroups.ts"

/** Implements the group `projects`. */
export const layer = group(
  Api,
  "projects",
  Effect.fnUntraced(function*(handlers) {
    const projects = yield* Projects
    const accessKeys = yield* AccessKeys
    const unknownGroups = yield* ScopeGroups.makeCheck
    return handlers.handleAll({
      createProject: ({ payload }) => respond(projects.create(payload), projectRecord),
      listProjects: ({ query }) => respondPage(query, projects.list, projectRecord),
      getProject: ({ params }) => respond(projects.get(params.project_id), projectRecord),
      deleteProject: ({ params }) => done(projects.remove(params.project_id)),
      createAccessKey: Effect.fnUntraced(function*({ payload }) {
        const principal = yield* CurrentPrincipal
        const { addresses, expires_at, name, project_id = principal.projectId, role, scopes } = payload
        const issues = unknownGroups(scopes?.actions ?? [])
        if (issues.length > 0) return yield* Effect.fail(invalidParameter(issues))
        const expiresAt = expires_at === undefined ? undefined : DateTime.toEpochMillis(expires_at)
        const now = yield* Clock.currentTimeMillis
        return yield* respond(
          accessKeys.create(project_id, { name, role, expiresAt, scopes, addresses }, principal),
          ({ accessKey, key }) => ({ ...accessKeyRecord(now)(accessKey), key: Redacted.value(key) })
        )
      }),
      listAccessKeys: ({ query }) =>
        Effect.flatMap(
          Clock.currentTimeMillis,
          (now) =>
            CurrentPrincipal.use(({ projectId }) =>
              respondPage(query, (page) => accessKeys.list(projectId, page), accessKeyRecord(now))
            )
        ),
      deleteAccessKey: ({ params, query }) =>
        CurrentPrincipal.use(({ projectId, role }) =>
          done(
            accessKeys.remove(projectId, params.id, { cascade: query.cascade === "true", isOwner: role === "owner" })
          )
        )
    })
  })
)

const projectRecord = ({ createdAt, id, name }: Project): typeof ProjectRecord.Type => ({
  id,
  name,
  created_at: dateText(createdAt)
})

const day = 86_400_000

const accessKeyRecord = (now: number) => (key: AccessKey): typeof AccessKeyRecord.Type => ({
  id: key.id,
  project_id: key.projectId,
  name: key.name,
  role: key.role,
  scopes: key.scopes,
  addresses: key.addresses ?? [],
  created_by: key.createdBy ?? "",
  created_at: dateText(key.createdAt),
  last_used_at: dateText(key.lastUsedAt),
  expires_at: dateText(key.expiresAt),
  expires_soon: expiresSoon(key.expiresAt, now),
  expires_in_days: key.expiresAt === null ? null : Math.max(0, Math.floor((key.expiresAt - now) / day))
})
