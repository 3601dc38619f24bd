/**
 * Port: where the keys are kept with which webhooks are signed.
 */
import { Context, type Effect, type Option } from "effect"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { WebhookKeys } from "./Webhook.ts"

/** Laws: each call is one transaction. The keys go with their project. */
export class WebhookKeyStore extends Context.Service<WebhookKeyStore, {
  /** Returns the keys of the project; none: it has none yet. */
  readonly get: (projectId: ProjectId) => Effect.Effect<Option.Option<WebhookKeys>, StoreError>
  /**
   * Stores the keys if the stored ones were made at `before` (Unix milliseconds);
   * null: if there are none. Returns `changed` if others are stored, or none, and
   * `no-project` if there are to be first ones of a project that does not exist.
   */
  readonly put: (
    projectId: ProjectId,
    before: number | null,
    keys: WebhookKeys
  ) => Effect.Effect<"stored" | "changed" | "no-project", StoreError>
}>()("@device-cloud/core/scene/execution/WebhookKeyStore") {}
