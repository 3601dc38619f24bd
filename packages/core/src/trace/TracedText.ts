/**
 * Payloads as a trace shows them: without secrets, and not too long. Pure.
 */
import { Hex } from "effect/encoding"

/** The beginning of a payload. */
export interface TracedText {
  readonly text: string
  readonly encoding: "utf8" | "hex"
  /** Bytes of the whole payload. */
  readonly bytes: number
  /** Whether more follows that is not shown. */
  readonly cut: boolean
}

/** Bytes of a payload that are shown. */
export const maxPayloadBytes = 4096
/** Bytes of the data of a reply that are shown. */
export const maxReplyBytes = 2048

/** Shows the beginning of a payload. Bytes that are no text are shown in hex. */
export const tracedText = (payload: Uint8Array | string, maxBytes: number = maxPayloadBytes): TracedText => {
  const bytes = typeof payload === "string" ? encoder.encode(payload) : payload
  const text = typeof payload === "string" ? payload : decodeText(bytes)
  if (text === undefined) {
    const shown = bytes.subarray(0, maxBytes / 2)
    return { text: Hex.encode(shown), encoding: "hex", bytes: bytes.length, cut: shown.length < bytes.length }
  }
  const shown = withoutSecrets(text)
  const start = beginning(shown, maxBytes)
  return { text: start, encoding: "utf8", bytes: bytes.length, cut: start.length < shown.length }
}

const encoder = new TextEncoder()

const decodeText = (bytes: Uint8Array): string | undefined => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes("\0") ? undefined : text
  } catch {
    return undefined
  }
}

/** The longest beginning of at most so many bytes. */
const beginning = (text: string, maxBytes: number): string => {
  if (3 * text.length <= maxBytes) return text
  const { read } = encoder.encodeInto(text, new Uint8Array(maxBytes))
  return text.slice(0, read)
}

/** What stands in the place of a secret. */
const mask = "***"

/** Names of members whose values are secrets or signatures. */
const secretName =
  /^(?:.*(?:secret|password|passwd|signature|credentials?)|sign|authorization|cipher|(?:device|access|refresh|auth|session|id)?_?token|(?:network|private|access|api|app)_?key)$/i

/** The same in what is not JSON, or a text in it. What stands before the word stays: no search begins there. */
const secretPair =
  /((?:secret|password|passwd|signature|(?<![a-z])sign|token|network_?key|private_?key|access_?key)(?:\\*["'])?\s*[:=]\s*(?:\\*["'])?)[^"',;&\s}\\]+/gi

/** Parameters of addresses that let in whoever has them, and addresses of objects, which do so by themselves. */
const parameter = /([?&]([\w.-]*)=)[^&"'\s\\]+/g
const secretParameter = /sign|token|secret|credential|key/i
const objectAddress = /(\/objects\/[\w-]{4})[\w-]+/g

/** Puts a mask in the place of secrets and signatures. A text without any stays as it is. */
export const withoutSecrets = (text: string): string =>
  (maskedMembers(text) ?? maskedPairs(text))
    .replaceAll(parameter, (whole, start: string, name: string) => secretParameter.test(name) ? start + mask : whole)
    .replaceAll(objectAddress, "$1…")

/**
 * Masks members of a JSON document, and what its texts say, such as JSON in a text;
 * undefined: the text is none.
 */
const maskedMembers = (text: string): string | undefined => {
  try {
    const document: unknown = JSON.parse(text)
    // Of two members of one name the document has the last only.
    let isMasked = namesSecret(text)
    const masked = JSON.stringify(document, (name, value: unknown) => {
      if (value === null || value === "") return value
      const shown = secretName.test(name) ? mask : typeof value === "string" ? maskedPairs(value) : value
      isMasked ||= shown !== value
      return shown
    })
    return isMasked ? masked : text
  } catch {
    // No JSON, or nested too deeply to be written.
    return undefined
  }
}

const maskedPairs = (text: string): string => text.replaceAll(secretPair, `$1${mask}`)

/** Each text of a JSON document, with what tells that it is a name. */
const texts = /"((?:[^"\\]|\\.)*)"(\s*:)?/g

/** Whether a member of the document has the name of a secret, also one that another of the same name replaces. */
const namesSecret = (json: string): boolean => {
  for (const [, text, colon] of json.matchAll(texts)) {
    if (colon !== undefined && secretName.test(text!)) return true
  }
  return false
}
