// Swagger UI over our own schema; nothing is asked of another host.
"use strict";
SwaggerUIBundle({
  url: document.getElementById("api").dataset.schema,
  dom_id: "#api",
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  docExpansion: "none",
  filter: true,
  validatorUrl: null,
});
