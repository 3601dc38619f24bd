/**
 * Loaded before a server whose memory is measured: SIGUSR2 collects its garbage.
 */
const { gc } = globalThis as { readonly gc?: () => void }
process.on("SIGUSR2", () => gc?.())
