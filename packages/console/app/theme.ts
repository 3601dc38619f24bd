/**
 * Light or dark.
 */
import { computed, signal } from "@preact/signals"

export const themes = ["system", "light", "dark"] as const
export type Theme = (typeof themes)[number]

const stored = "device-cloud-theme"

export const theme = signal<Theme>("system")

const systemIsDark = matchMedia("(prefers-color-scheme: dark)")
const isSystemDark = signal(systemIsDark.matches)
systemIsDark.addEventListener("change", ({ matches }) => {
  isSystemDark.value = matches
})

/** Whether the page is dark now. */
export const isDark = computed(() => theme.value === "system" ? isSystemDark.value : theme.value === "dark")

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
