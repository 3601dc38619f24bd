/**
 * Port: the keys under which secrets are sealed at rest
 * (docs/decisions/0057-sealed-secrets.md).
 *
 * A master key stays with the operator and seals data keys; a data key seals
 * secrets, and lies beside them in its sealed form.
 */
import { Context, type Effect, Schema } from "effect"

export class KeyRing extends Context.Service<KeyRing, {
  /**
   * Returns the id of the master key that seals data keys from now on; the same
   * key has the same id everywhere. Makes the first master key if there is none
   * and the ring can keep one.
   */
  readonly masterKeyId: Effect.Effect<string, KeyRingError>
  /** Makes a data key and seals it under the current master key. */
  readonly generate: Effect.Effect<{ readonly key: DataKey; readonly sealed: SealedDataKey }, KeyRingError>
  /** Opens a data key. Fails if the ring does not have its master key. Makes no master key. */
  readonly open: (sealed: SealedDataKey) => Effect.Effect<DataKey, KeyRingError>
  /** Seals a data key under the current master key in place of the one that it is sealed under. */
  readonly reseal: (sealed: SealedDataKey) => Effect.Effect<SealedDataKey, KeyRingError>
}>()("@device-cloud/core/kernel/KeyRing") {}

/** A data key as it is stored. */
export interface SealedDataKey {
  /** The master key under which it is sealed. */
  readonly masterKeyId: string
  /** Text that reveals nothing of the key. */
  readonly sealed: string
}

/** Seals texts with AES-256-GCM. The members are functions without effects: they run for each row. */
export interface DataKey {
  /** Seals a text. `place` says where it is kept, and is needed to open it. The same text is sealed differently each time. */
  readonly seal: (text: string, place: string) => string
  /** Opens a sealed text; undefined if this key did not seal it, or not for this place. */
  readonly open: (sealed: string, place: string) => string | undefined
  /** Returns a text by which equal texts can be found without opening them: a MAC of 64 hex digits. */
  readonly fingerprint: (text: string) => string
}

/** A master key is missing, malformed, or cannot be kept. */
export class KeyRingError extends Schema.TaggedError<KeyRingError>()("KeyRingError", {
  /** What to do. */
  message: Schema.String,
  cause: Schema.optional(Schema.Defect())
}) {}
