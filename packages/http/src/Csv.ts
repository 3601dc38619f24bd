/**
 * Tables as text (RFC 4180).
 */

/** A cell with text, which a spreadsheet takes for text and not for a formula. */
export const textCell = (text: string): string => `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll("\"", "\"\"")}"`

/** A line of cells. */
export const line = (cells: ReadonlyArray<string>): string => cells.join(",") + "\r\n"

/** The type of a response. */
export const contentType = "text/csv; charset=utf-8"
