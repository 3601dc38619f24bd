/**
 * What no device should write into a payload: JSON in the forms of all messages,
 * with something odd where values stand, and texts that are no JSON.
 */
import type { Dice } from "./Dice.ts"

const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels)

const nestedObject = (levels: number): string => `{"a":`.repeat(levels) + "1" + "}".repeat(levels)

/** JSON texts of values, and texts that are nearly JSON. */
const oddValues: ReadonlyArray<string> = [
  "0",
  "-0",
  "1",
  "-1",
  "1.5",
  "2147483648",
  "9007199254740993",
  "1e308",
  "1e999",
  "-1e999",
  "1e-400",
  "NaN",
  "Infinity",
  "undefined",
  "true",
  "null",
  `""`,
  `"null"`,
  `"{}"`,
  `"text"`,
  `"\\u0000"`,
  `"a\\u0000b"`,
  `"\\ud800"`,
  `"\\udc00\\ud800"`,
  `"\\ufffe"`,
  `"😀"`,
  `"${"x".repeat(2000)}"`,
  `"${"\\u0001".repeat(5000)}"`,
  "[]",
  "{}",
  "[[]]",
  "[null,{}]",
  `{"__proto__":{"polluted":true}}`,
  `{"constructor":{"prototype":{"polluted":true}}}`,
  `{"toString":1,"valueOf":1}`,
  `{"toJSON":1}`,
  `{"length":-1}`,
  `{"then":1}`,
  `{"value":1}`,
  `{"value":1,"time":1}`,
  `{"value":1,"time":-1}`,
  `{"value":1,"time":1e999}`,
  `{"value":1,"time":8640000000000001}`,
  `{"value":1,"time":"1524448722000"}`,
  `{"value":{"value":{"value":1}}}`,
  `{"version":1}`,
  `{"version":"1"}`,
  nested(20),
  nestedObject(40),
  `[${Array.from({ length: 300 }, (_, i) => i).join()}]`,
  `{${Array.from({ length: 300 }, (_, i) => `"p${i}":${i}`).join()}}`
]

const hugeValues: ReadonlyArray<string> = [
  `"${"x".repeat(100_000)}"`,
  nested(1000),
  nested(50_000),
  nestedObject(20_000),
  `[${"1,".repeat(120_000)}1]`,
  `{${Array.from({ length: 9000 }, (_, i) => `"p${i}":${i}`).join()}}`
]

const oddNames: ReadonlyArray<string> = [
  "level",
  "power",
  "alarm",
  "value",
  "time",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "a b",
  "a.b",
  "a/b",
  "block:level",
  "",
  "\\u0000",
  "\\ud800",
  "x".repeat(200),
  "ключ"
]

const oddIds: ReadonlyArray<string> = [
  `"1"`,
  "1",
  "0",
  "-1",
  "1.5",
  "1e999",
  "4294967296",
  "9007199254740993",
  `""`,
  `"${"9".repeat(400)}"`,
  `"\\u0000"`,
  `"\\ud800"`,
  "null",
  "[]",
  "{}",
  `{"toString":1,"valueOf":1}`,
  `"1|exp-topic|/sys/a/b/thing/event/property/post_reply"`
]

const oddValue = (dice: Dice): string => {
  if (dice.chance(0.03)) return dice.pick(hugeValues)
  if (dice.chance(0.7)) return dice.pick(oddValues)
  return dice.chance(0.5)
    ? `[${dice.many(dice.below(4), () => oddValue(dice)).join()}]`
    : `{${dice.many(dice.below(4), () => `"${dice.pick(oddNames)}":${oddValue(dice)}`).join()}}`
}

const oddMembers = (dice: Dice): string =>
  `{${dice.many(dice.below(5), () => `"${dice.pick(oddNames)}":${oddValue(dice)}`).join()}}`

/** Parameters in the forms of all messages, with something odd where values stand. */
const paramsForms: ReadonlyArray<(dice: Dice) => string> = [
  oddValue,
  oddMembers,
  oddMembers,
  (dice) => `{"value":${oddMembers(dice)},"time":${oddValue(dice)}}`,
  (dice) => `{"properties":${oddMembers(dice)},"events":${oddMembers(dice)}}`,
  (dice) => `{"properties":${oddMembers(dice)},"subDevices":${oddValue(dice)}}`,
  (dice) => `{"properties":{"level":[${dice.many(3, () => `{"value":${oddValue(dice)},"time":1}`).join()}]}}`,
  (dice) => `[{"identity":${oddValue(dice)},"properties":[${oddMembers(dice)}],"events":${oddValue(dice)}}]`,
  (dice) => `[{"properties":{"level":${dice.chance(0.1) ? dice.pick(hugeValues) : oddValue(dice)}}}]`,
  (dice) => `[{"attrKey":${oddValue(dice)},"attrValue":${oddValue(dice)}}]`,
  (dice) => `[{"attrKey":"${dice.pick(oddNames)}","attrValue":${oddValue(dice)}}]`,
  (dice) => `["${dice.pick(oddNames)}",${oddValue(dice)}]`,
  (dice) => `{"p":${oddValue(dice)},"model":${oddValue(dice)}}`,
  (dice) => `[{"utcTime":${oddValue(dice)},"logLevel":"WARN","logContent":${oddValue(dice)}}]`,
  (dice) => `{"random":${oddValue(dice)}}`,
  (dice) =>
    `{"network_key":"${dice.pick(oddNames)}","product_key":"${dice.pick(oddNames)}",` +
    `"device_name":${oddValue(dice)},"sign":${oddValue(dice)},"sign_method":"aescmac","node_type":1,` +
    `"mesh_addr":${oddValue(dice)}}`,
  (dice) => `{"network_key":"${dice.pick(oddNames)}","page":${oddValue(dice)}}`,
  (dice) => `{"step":${oddValue(dice)},"desc":${oddValue(dice)},"module":"${dice.pick(oddNames)}"}`
]

type Body = (dice: Dice) => string

const requests: ReadonlyArray<Body> = [
  (dice) =>
    `{"id":${dice.pick(oddIds)},"version":"1.0","sys":${dice.pick([`{"ack":0}`, `{"ack":1}`, oddValue(dice)])},` +
    `"params":${dice.pick(paramsForms)(dice)},"method":${oddValue(dice)}}`,
  (dice) => `{"id":${dice.pick(oddIds)},"params":${dice.pick(paramsForms)(dice)}}`
]

const answers: ReadonlyArray<Body> = [
  (dice) =>
    `{"id":${dice.pick(oddIds)},"code":${dice.pick(["200", oddValue(dice)])},"message":${oddValue(dice)},` +
    `"data":${oddValue(dice)}}`
]

const shadows: ReadonlyArray<Body> = [
  (dice) =>
    `{"method":"${dice.pick(["update", "get", "delete", "control", ""])}","state":{"reported":${oddValue(dice)},` +
    `"desired":${oddValue(dice)}},"version":${dice.pick(["1", "-1", "4503599627370496", oddValue(dice)])},` +
    `"clientToken":${oddValue(dice)}}`,
  (dice) => `{"method":"update","state":{"reported":${oddMembers(dice)}},"version":${dice.below(2 ** 31)}}`,
  (dice) => `{"method":"get","clientToken":${oddValue(dice)}}`
]

const times: ReadonlyArray<Body> = [(dice) => `{"deviceSendTime":${oddValue(dice)}}`]

const others: ReadonlyArray<Body> = [
  oddValue,
  () => "",
  () => "{",
  () => `{"id":"1","id":"2","params":{},"params":{"a":1}}`
]

/** In most cases what belongs on the topic. */
export const payload = (dice: Dice, topic: string): Buffer => {
  const fitting = topic.startsWith("/shadow/") ?
    shadows :
    topic.startsWith("/ext/ntp/") ?
    times :
    topic.includes("_reply") || topic.includes("rrpc") ?
    answers :
    requests
  const text = Buffer.from(
    dice.pick(dice.chance(0.8) ? fitting : [...requests, ...answers, ...shadows, ...others])(dice)
  )
  if (dice.chance(0.9)) return text
  // Odd UTF-8: overlong forms, surrogates, bytes that belong to nothing.
  const odd = dice.pick(["c080", "eda080", "ff", "f8888080", "efbbbf", "80", "f09f98"])
  const at = dice.below(text.length + 1)
  return Buffer.concat([text.subarray(0, at), Buffer.from(odd, "hex"), text.subarray(at)])
}
