/**
 * All texts of the console, in the language of the viewer.
 */
import { signal } from "@preact/signals"
import { en } from "./en/index.ts"

/** What each language has. */
export type Texts = typeof en

export const languages = { en: "English", zh: "中文" } as const
export type Language = keyof typeof languages

const stored = "device-cloud-language"

export const language = signal<Language>("en")
const current = signal<Texts>(en)

/** The texts; the part of the page that calls it is drawn again when the language changes. */
export const useTexts = (): Texts => current.value

/** The texts outside of what is drawn, for example for a message after a click. */
export const texts = (): Texts => current.peek()

/** Changes the language, also for the next visit. Fails if its texts do not come. */
export const chooseLanguage = async (chosen: Language): Promise<void> => {
  current.value = chosen === "zh" ? (await import("./zh/index.ts")).zh : en
  language.value = chosen
  document.documentElement.lang = chosen
  localStorage.setItem(stored, chosen)
}

/** The language that was chosen, or else that of the browser; English if its texts do not come. */
export const loadLanguage = (): Promise<void> => {
  const chosen = localStorage.getItem(stored) ?? navigator.language.slice(0, 2)
  return chooseLanguage(chosen === "zh" ? "zh" : "en").catch(() => {})
}

/** A sentence without what turns around the letters after it: a name has no say in how the sentence around it reads. */
export const unturned = (text: string): string => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")

/** Numbers, times and durations as the language writes them. */
export const formatNumber = (value: number, options?: Intl.NumberFormatOptions): string =>
  new Intl.NumberFormat(language.value, options).format(value)

/** What has been measured, as exact as one reads it. What has too many digits is written with a power of ten. */
export const formatFigure = (value: number): string => {
  const size = Math.abs(value)
  const isFar = size !== 0 && (size < 1e-6 || size >= 1e15)
  return formatNumber(value, { maximumFractionDigits: 6, ...isFar ? { notation: "scientific" } : {} })
}

/** Bytes in a unit that fits. */
export const formatBytes = (bytes: number): string => {
  const power = bytes === 0 ? 0 : Math.min(Math.floor(Math.log(bytes) / Math.log(1000)), 3)
  return formatNumber(bytes / 1000 ** power, {
    style: "unit",
    unit: ["byte", "kilobyte", "megabyte", "gigabyte"][power]!,
    maximumFractionDigits: power === 0 ? 0 : 1
  })
}
