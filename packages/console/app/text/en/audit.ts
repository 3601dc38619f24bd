/** The audit log. */
export const audit = {
  lead: "Who changed what, which secrets were read, which requests were refused.",
  adminsOnly: "Only admins read the audit log.",
  caption: "Audit entries, the newest first",
  key: "Access key",
  action: "Operation",
  actionHint: "products.createProduct",
  resource: "Resource",
  resourceHint: "Id",
  address: "From",
  request: "Request",
  result: "Result",
  carriedOut: "carried out",
  refused: (code: number) => `refused, ${code}`,
  server: "the server itself",
  start: "From",
  end: "Until",
  older: "Older entries",
  newest: "To the newest",
  exportCsv: "Export as CSV",
  empty: "No entries fit these filters"
}
