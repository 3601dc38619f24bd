export const gateways = {}
