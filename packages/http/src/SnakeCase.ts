/**
 * Between the names of the domain, in camel case, and those on the wire, in snake
 * case (docs/decisions/0010-wire-names.md).
 */
import { Schema } from "effect"

/** The fields of a domain struct under their names on the wire. Checks of the whole struct are left to the domain. */
export const toSnakeCase = <const Fields extends Schema.Struct.Fields>(
  struct: Schema.Struct<Fields>
): Schema.Struct<SnakeCaseFields<Fields>> =>
  Schema.Struct(
    Object.fromEntries(
      Object.entries(struct.fields).map(([name, field]) => [snakeCase(name), field])
    ) as unknown as SnakeCaseFields<Fields>
  )

/** The members of a body under their names in the domain. */
export const toCamelCase = <Body extends object>(body: Body): CamelCaseNames<Body> =>
  Object.fromEntries(Object.entries(body).map(([name, value]) => [camelCase(name), value])) as CamelCaseNames<Body>

/** One name: `productKey` becomes `product_key`. */
export const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** One name: `product_key` becomes `productKey`. */
const camelCase = (name: string): string => name.replaceAll(/_[a-z]/g, (pair) => pair.charAt(1).toUpperCase())

type SnakeCase<Text extends string> = Text extends `${infer Head}${infer Tail}`
  ? Head extends Lowercase<Head> ? `${Head}${SnakeCase<Tail>}` : `_${Lowercase<Head>}${SnakeCase<Tail>}`
  : Text

type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text

type SnakeCaseFields<Fields extends Schema.Struct.Fields> = {
  readonly [Name in keyof Fields & string as SnakeCase<Name>]: Fields[Name]
}

type CamelCaseNames<Body> = { readonly [Name in keyof Body & string as CamelCase<Name>]: Body[Name] }
