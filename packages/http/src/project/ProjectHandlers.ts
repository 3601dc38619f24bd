/**
 * Handlers of the routes of projects and access keys.
 */
import { type AccessKey, AccessKeys, type Project, Projects } from "@device-cloud/core"
import { DateTime, Effect, Redacted } from "effect"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond, respondPage } from "../Envelope.ts"
import { RoleTooLow } from "./ProjectFailures.ts"
import { group } from "../ApiHandlers.ts"
import type { AccessKeyRecord, ProjectRecord } from "./ProjectApi.ts"

/** Implements the group `projects`. */
export const layer = group(
  Api,
  "projects",
  Effect.fnUntraced(function*(handlers) {
    const projects = yield* Projects
    const accessKeys = yield* AccessKeys
    return handlers.handleAll({
      createProject: ({ payload }) => respond(projects.create(payload), projectRecord),
      listProjects: ({ query }) => respondPage(query, projects.list, projectRecord),
      getProject: ({ params }) => respond(projects.get(params.project_id), projectRecord),
      deleteProject: ({ params }) => done(projects.remove(params.project_id)),
      createAccessKey: Effect.fnUntraced(function*({ payload }) {
        const principal = yield* CurrentPrincipal
        const { expires_at, name, project_id = principal.projectId, role } = payload
        if (project_id !== principal.projectId && principal.role !== "owner") {
          return yield* Effect.fail(RoleTooLow.make({ message: "project_id: only an owner may name another project" }))
        }
        const expiresAt = expires_at === undefined ? undefined : DateTime.toEpochMillis(expires_at)
        return yield* respond(
          accessKeys.create(project_id, { name, role, expiresAt }),
          ({ accessKey, key }) => ({ ...accessKeyRecord(accessKey), key: Redacted.value(key) })
        )
      }),
      listAccessKeys: ({ query }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respondPage(query, (page) => accessKeys.list(projectId, page), accessKeyRecord)
        ),
      deleteAccessKey: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(accessKeys.remove(projectId, params.id)))
    })
  })
)

const projectRecord = ({ createdAt, id, name }: Project): typeof ProjectRecord.Type => ({
  id,
  name,
  created_at: dateText(createdAt)
})

const accessKeyRecord = (key: AccessKey): typeof AccessKeyRecord.Type => ({
  id: key.id,
  project_id: key.projectId,
  name: key.name,
  role: key.role,
  created_at: dateText(key.createdAt),
  expires_at: dateText(key.expiresAt)
})
