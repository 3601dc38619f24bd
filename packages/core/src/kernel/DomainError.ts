/**
 * The errors of the domain.
 */
import { type Cause, Schema } from "effect"

/**
 * Declares an error: `Schema.TaggedError` with a message, which says what is wrong
 * and with which resource. Secrets in it are cut with {@link shortened}.
 *
 * ```ts
 * class ShelfNotFound extends DomainError<ShelfNotFound>()(
 *   "ShelfNotFound",
 *   { shelfId: Schema.String },
 *   ({ shelfId }) => `There is no shelf ${shelfId}`
 * ) {}
 * ```
 */
export const DomainError = <Self>() =>
<const Tag extends string, const Fields extends Schema.Struct.Fields>(
  tag: Tag,
  fields: Fields,
  messageOf: (error: Schema.Struct<Fields>["Type"]) => string
): Schema.Class<Self, Schema.TaggedStruct<Tag, Fields>, Cause.YieldableError> => {
  const declared = Schema.TaggedError<Self>()(tag, fields)
  Object.defineProperty((declared as { readonly prototype: object }).prototype, "message", {
    configurable: true,
    get(this: Schema.Struct<Fields>["Type"]) {
      return messageOf(this)
    }
  })
  return declared as Schema.Class<Self, Schema.TaggedStruct<Tag, Fields>, Cause.YieldableError>
}

/** The beginning of an id that is a secret: enough to find it. */
export const shortened = (secret: string): string => `${secret.slice(0, 8)}…`
