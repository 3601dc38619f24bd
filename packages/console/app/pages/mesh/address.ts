/** An address of a mesh network as people write it: four hex digits. */
export const address = (value: number): string => `0x${value.toString(16).toUpperCase().padStart(4, "0")}`
