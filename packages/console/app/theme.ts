/**
 * Light or dark.
 */
import { signal } from "@preact/signals"

export const themes = ["system", "light", "dark"] as const
export type Theme = (typeof themes)[number]

const stored = "device-cloud-theme"

export const theme = signal<Theme>("system")

/** Changes the theme, also for the next visit. */
export const chooseTheme = (chosen: Theme): void => {
  if (chosen === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = chosen
  localStorage.setItem(stored, chosen)
  theme.value = chosen
}

/** The theme that was chosen on this browser. */
export const loadTheme = (): void => {
  const chosen = localStorage.getItem(stored)
  chooseTheme(themes.find((theme) => theme === chosen) ?? "system")
}
