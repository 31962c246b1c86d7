"""Keeps a ConfigMap and a Deployment for each Widget, on Kopf.

WRITES=apply, the default, applies them in every pass; WRITES=compare reads them first and writes what differs.
"""

import functools
import os

import kopf
import kubernetes

GROUP, VERSION, KIND, PLURAL = 'bench.example.com', 'v1', 'Widget', 'widgets'
MANAGER = 'bench'
COMPARES = os.environ.get('WRITES') == 'compare'


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False  # No contender tells what it does in events, but for those that cannot help it.
    settings.execution.max_workers = 10


@kopf.on.resume(GROUP, VERSION, PLURAL)
@kopf.on.create(GROUP, VERSION, PLURAL)
@kopf.on.update(GROUP, VERSION, PLURAL)
def converge(body, patch, **_):
    keep(body)
    patch.status['ready'] = True
    patch.status['observedGeneration'] = body['metadata']['generation']


def is_owned(meta, **_):
    return owner_of(meta) is not None


@kopf.on.event('apps', 'v1', 'deployments', when=is_owned)
@kopf.on.event('', 'v1', 'configmaps', when=is_owned)
def child_changed(type, meta, namespace, **_):
    """Something below a resource is not as it was, so it is made so again. What the first list has is no change."""
    if type is None:
        return
    owner = read(api(f'{GROUP}/{VERSION}', KIND), namespace, owner_of(meta))
    if owner is not None and 'deletionTimestamp' not in owner['metadata']:
        keep(owner)


def keep(owner):
    for child, is_it in ((config_map(owner), is_config_map), (deployment(owner), is_deployment)):
        kopf.adopt(child, owner=owner)
        resource = api(child['apiVersion'], child['kind'])
        name, namespace = child['metadata']['name'], child['metadata']['namespace']
        if COMPARES:
            live = read(resource, namespace, name)
            if live is not None and is_it(live, child):
                continue
        resource.server_side_apply(
            body=child, name=name, namespace=namespace, field_manager=MANAGER, force_conflicts=True)


def is_config_map(live, wanted):
    return live.get('data') == wanted['data']


def is_deployment(live, wanted):
    def facts(it):
        return it['spec']['replicas'], it['spec']['template']['spec']['containers'][0]['image']
    return facts(live) == facts(wanted)


def config_map(owner):
    return {
        'apiVersion': 'v1',
        'kind': 'ConfigMap',
        'metadata': {'name': owner['metadata']['name']},
        'data': {'text': owner['spec']['text']},
    }


def deployment(owner):
    labels = {'widget': owner['metadata']['name']}
    container = {
        'name': 'main',
        'image': 'registry.example.com/bench/program:1.2.3',
        'ports': [{'name': 'http', 'containerPort': 8080}],
    }
    return {
        'apiVersion': 'apps/v1',
        'kind': 'Deployment',
        'metadata': {'name': owner['metadata']['name']},
        'spec': {
            'replicas': owner['spec']['replicas'],
            'selector': {'matchLabels': labels},
            'template': {'metadata': {'labels': labels}, 'spec': {'containers': [container]}},
        },
    }


def owner_of(meta):
    """The name of the resource that owns an object."""
    references = meta.get('ownerReferences') or []
    return next((it['name'] for it in references if it['kind'] == KIND), None)


@functools.cache
def dynamic():
    return kubernetes.dynamic.DynamicClient(kubernetes.client.ApiClient())  # Kopf's login has configured it.


def api(api_version, kind):
    return dynamic().resources.get(api_version=api_version, kind=kind)


def read(resource, namespace, name):
    try:
        return resource.get(name=name, namespace=namespace).to_dict()
    except kubernetes.dynamic.exceptions.NotFoundError:
        return None
