/**
 * How many connections the server takes, out of the files that its process may
 * have open.
 */

/** Returns how many files the process may have open; a million if there is no limit. */
export const openFiles = (): number => {
  const { userLimits } = process.report.getReport() as unknown as {
    readonly userLimits?: { readonly open_files: { readonly soft: number | string } }
  }
  const limit = Number(userLimits?.open_files.soft)
  return Number.isSafeInteger(limit) && limit > 0 ? limit : 1_000_000
}

/**
 * Shares the files out: a part for the database, objects and webhooks, three
 * quarters of the rest for MQTT, a quarter for HTTP, WebSockets among it.
 */
export const shareOf = (files: number): { readonly mqtt: number; readonly http: number } => {
  const connections = files - Math.max(100, Math.floor(files / 10))
  const http = Math.max(10, Math.floor(connections / 4))
  return { mqtt: Math.max(10, connections - http), http }
}
