/** Diagrams become SVG when the site is built, so that pages load no script for them. */
import { renderMermaidSVG } from "beautiful-mermaid"

/** The colors follow the theme of the page, light or dark. */
const colors = {
  bg: "var(--vp-c-bg)",
  fg: "var(--vp-c-text-1)",
  line: "var(--vp-c-text-3)",
  muted: "var(--vp-c-text-2)",
  accent: "var(--vp-c-brand-1)",
  surface: "var(--vp-c-bg-soft)",
  border: "var(--vp-c-border)"
}

/** Returns a diagram as SVG. The renderer asks for fonts of the web; the fonts of the system do. */
export const svg = (diagram: string): string =>
  renderMermaidSVG(diagram, { ...colors, font: "system-ui" }).replaceAll(/@import url\([^)]*\);?/g, "")
