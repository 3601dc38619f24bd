/**
 * From the names of the domain to those on the wire: the specification writes
 * its fields in snake case.
 */
import { Schema, SchemaTransformation } from "effect"

type SnakeCase<Text extends string> = Text extends `${infer Head}${infer Tail}`
  ? Head extends Lowercase<Head> ? `${Head}${SnakeCase<Tail>}` : `_${Lowercase<Head>}${SnakeCase<Tail>}`
  : Text

type SnakeCaseFields<Fields extends Schema.Struct.Fields> = {
  readonly [Key in keyof Fields & string as SnakeCase<Key>]: Fields[Key]
}

/** `productKey` becomes `product_key`. */
export const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * The same struct with snake-case names on the encoded side. What is wrong with
 * a field is reported under its name on the wire.
 */
export const wire = <const Fields extends Schema.Struct.Fields>(struct: Schema.Struct<Fields>) => {
  const names = Object.keys(struct.fields).map((name) => [name, snakeCase(name)] as const)
  const rename = <From, To>(pairs: ReadonlyArray<readonly [from: string, to: string]>) => (value: From): To => {
    const source = value as Record<string, unknown>
    return Object.fromEntries(
      pairs.flatMap(([from, to]) => Object.hasOwn(source, from) ? [[to, source[from]]] : [])
    ) as To
  }
  const encoded = Schema.Struct(
    Object.fromEntries(names.map(([name, onWire]) => [onWire, struct.fields[name]])) as unknown as SnakeCaseFields<
      Fields
    >
  )
  return encoded.pipe(Schema.decodeTo(
    Schema.toType(struct),
    SchemaTransformation.transform<Schema.Struct<Fields>["Type"], Schema.Struct<SnakeCaseFields<Fields>>["Type"]>({
      decode: rename(names.map(([name, onWire]) => [onWire, name])),
      encode: rename(names)
    })
  ))
}
