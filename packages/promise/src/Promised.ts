/**
 * Turns services of Effect into services of promises: their types and their
 * members, both derived.
 */
import type { Json } from "@device-cloud/core"
import { type Brand, Effect, Option, Redacted, Stream } from "effect"

/**
 * A service with promises. Each member that returns an Effect returns a promise,
 * and one that is an Effect is a function without parameters; streams are async
 * iterables. In results, an `Option` is its value or undefined, and a `Redacted` is
 * its value. Ids may be given as plain text.
 *
 * Members that ask for services or a scope, as extension points do, are left out:
 * they are for programs on Effect.
 */
export type Promised<Service> = {
  readonly [Member in keyof Service as IsOffered<Service[Member]> extends true ? Member : never]: PromisedMember<
    Service[Member]
  >
}

/** The failures of the members of a service, as its Effects and streams have them; of each of a union. */
export type Failures<Tag> = Tag extends { readonly Service: infer Service }
  ? { [Member in keyof Service]: IsOffered<Service[Member]> extends true ? FailureOf<Service[Member]> : never }[
    keyof Service
  ]
  : never

/** Services by their names, `Devices` as `devices`. */
export type PromisedServices<Tag extends ServiceTag> = {
  readonly [Key in Tag["key"] as Uncapitalize<LastPart<Key>>]: Promised<
    Extract<Tag, { readonly key: Key }>["Service"]
  >
}

/** A service of the core, whose key ends with its name. */
export interface ServiceTag {
  readonly key: string
  readonly Service: object
}

/** Runs an Effect, and makes a stream an async iterable. */
export interface Runner {
  readonly promise: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly iterable: <A, E>(stream: Stream.Stream<A, E>) => AsyncIterable<A>
  /** Runs in the same way until this signal aborts as well. */
  readonly withSignal: (signal: AbortSignal) => Runner
}

/** The services that `serviceOf` returns, with promises. Each is made when it is first used. */
export const promisedServices = <Tag extends ServiceTag>(
  tags: ReadonlyArray<Tag>,
  serviceOf: (tag: Tag) => object,
  runner: Runner
): PromisedServices<Tag> => {
  const services = {}
  for (const tag of tags) {
    const name = tag.key.slice(tag.key.lastIndexOf("/") + 1)
    let made: object | undefined
    Object.defineProperty(services, name.charAt(0).toLowerCase() + name.slice(1), {
      enumerable: true,
      get: () => made ??= promisedMembers(serviceOf(tag), runner)
    })
  }
  return services as PromisedServices<Tag>
}

/** The members of a service, with promises. */
export const promisedMembers = (service: object, runner: Runner): object =>
  Object.fromEntries(
    Object.entries(service).map(([name, member]) => [
      name,
      typeof member === "function"
        ? (...args: ReadonlyArray<unknown>) => returned(member(...args), runner)
        : Effect.isEffect(member)
        ? () => returned(member, runner)
        : member
    ])
  )

const returned = (value: unknown, runner: Runner): unknown => {
  if (Effect.isEffect(value)) {
    return runner.promise(value as Effect.Effect<unknown, unknown>).then((result) => plain(result, runner))
  }
  return Stream.isStream(value) ? runner.iterable(value as Stream.Stream<unknown, unknown>) : value
}

const plain = (result: unknown, runner: Runner): unknown => {
  if (Option.isOption(result)) return Option.getOrUndefined(result)
  if (Stream.isStream(result)) return runner.iterable(result as Stream.Stream<unknown, unknown>)
  if (typeof result !== "object" || result === null) return result
  if (Redacted.isRedacted(result)) return Redacted.value(result)
  return Object.values(result).some(Redacted.isRedacted)
    ? Object.fromEntries(
      Object.entries(result).map(([name, value]) => [name, Redacted.isRedacted(value) ? Redacted.value(value) : value])
    )
    : result
}

type LastPart<Key extends string> = Key extends `${string}/${infer Rest}` ? LastPart<Rest> : Key

type IsOffered<Member> = Member extends Effect.Effect<unknown, unknown, infer R> ? [R] extends [never] ? true : false
  : Member extends (...args: infer _Args) => infer Result
    ? [Extract<Result, Effect.Effect<unknown, unknown, unknown>>] extends [Effect.Effect<unknown, unknown, never>]
      ? true
    : false
  : true

type FailureOf<Member> = Member extends (...args: infer _Args) => infer Result ? FailureOfResult<Result>
  : FailureOfResult<Member>

type FailureOfResult<Result> = Result extends Effect.Effect<infer A, infer E, infer _R> ? E | FailureOfStream<A>
  : FailureOfStream<Result>

type FailureOfStream<Result> = Result extends Stream.Stream<infer _A, infer E, infer _R> ? E : never

type PromisedMember<Member> = Member extends Effect.Effect<infer A, infer _E, infer _R> ? () => Promise<Plain<A>>
  : Member extends (...args: infer Args) => infer Result ? (...args: GivenAll<Args>) => Returned<Result>
  : Member

type Returned<Result> = Result extends Effect.Effect<infer A, infer _E, infer _R> ? Promise<Plain<A>>
  : Result extends Stream.Stream<infer A, infer _E, infer _R> ? AsyncIterable<A>
  : Result

type Plain<Result> = Result extends Option.Option<infer A> ? A | undefined
  : Result extends Stream.Stream<infer A, infer _E, infer _R> ? AsyncIterable<A>
  : Result extends Redacted.Redacted<infer A> ? A
  : Result extends object ? HasRedacted<Result> extends true ? { readonly [Name in keyof Result]: Shown<Result[Name]> }
    : Result
  : Result

type HasRedacted<Result> = [Extract<Result[keyof Result], Redacted.Redacted<unknown>>] extends [never] ? false : true

type Shown<Value> = Value extends Redacted.Redacted<infer A> ? A : Value

type GivenAll<Args extends ReadonlyArray<unknown>> = { [Position in keyof Args]: Given<Args[Position]> }

/** A parameter, with plain text in place of ids. */
export type Given<Value> = [Json] extends [Value] ? Value
  : Value extends Brand.Brand<infer _Keys> ? Value extends string ? string : Value extends number ? number : Value
  : Value extends Whole ? Value
  : Value extends object ? { [Name in keyof Value]: Given<Value[Name]> }
  : Value

/** Parameters that have no ids in them, or are taken as they are. */
type Whole =
  | ((...args: never) => unknown)
  | Effect.Effect<unknown, unknown, unknown>
  | Stream.Stream<unknown, unknown, unknown>
  | Redacted.Redacted<unknown>
  | ReadonlyMap<unknown, unknown>
  | Uint8Array
