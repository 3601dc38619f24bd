/**
 * Loaded before a server whose memory is measured: collects garbage on SIGUSR2.
 */
const { gc } = globalThis as { readonly gc?: () => void }
process.on("SIGUSR2", () => gc?.())
