"""Keeps memcached clusters running: one Deployment and one Service per resource."""

import datetime
import functools

import kopf
import kubernetes

GROUP, VERSION, KIND, PLURAL = 'cache.example.com', 'v1alpha1', 'Memcached', 'memcacheds'
MANAGER = 'memcached-operator'
NAME_LABEL, OWNER_LABEL = 'app.kubernetes.io/name', 'app.kubernetes.io/instance'
PORT = 11211
DEFAULT_IMAGE = 'memcached:1.6'


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.loggers = True  # What handlers log, failures above all, is told on the resource as well.


@kopf.on.resume(GROUP, VERSION, PLURAL, backoff=10)
@kopf.on.create(GROUP, VERSION, PLURAL, backoff=10)
@kopf.on.update(GROUP, VERSION, PLURAL, backoff=10)
@kopf.timer(GROUP, VERSION, PLURAL, interval=60, initial_delay=60, backoff=10)
def converge(body, **_):
    """Brings a resource to where it is declared to be. The timer is a net for events that were lost."""
    keep(body, deployment(body))
    keep(body, service(body))
    report(body)


def is_owned(meta, **_):
    return owner_of(meta) is not None


@kopf.on.event('apps', 'v1', 'deployments', when=is_owned)
@kopf.on.event('', 'v1', 'services', when=is_owned)
@kopf.on.event('', 'v1', 'pods', labels={NAME_LABEL: 'memcached', OWNER_LABEL: kopf.PRESENT})
def child_changed(meta, namespace, **_):
    """Something below a resource is not as it was, so the resource is looked at again."""
    name = owner_of(meta) or meta.labels[OWNER_LABEL]
    owner = read(api(f'{GROUP}/{VERSION}', KIND), namespace, name)
    if owner is not None and 'deletionTimestamp' not in owner['metadata']:
        converge(body=owner)


def keep(owner, child):
    """Makes a child, or changes what of it is not as wanted, and tells of it."""
    kopf.adopt(child, owner=owner)
    resource = api(child['apiVersion'], child['kind'])
    name, namespace = child['metadata']['name'], child['metadata']['namespace']
    before = read(resource, namespace, name)
    after = resource.server_side_apply(
        body=child, name=name, namespace=namespace, field_manager=MANAGER, force_conflicts=True).to_dict()
    if before is None or before['metadata']['resourceVersion'] != after['metadata']['resourceVersion']:
        kopf.info(owner, reason='Kept', message=f"{child['kind']} {name} was {'changed' if before else 'created'}")


def report(owner):
    """Writes the status, if it is another than before."""
    namespace, name, size = owner['metadata']['namespace'], owner['metadata']['name'], owner['spec']['size']
    selector = ','.join(f'{key}={value}' for key, value in labels(owner).items())
    pods = [pod.to_dict() for pod in api('v1', 'Pod').get(namespace=namespace, label_selector=selector).items]
    pods = [pod for pod in pods if is_active(pod)]
    ready = sum(is_ready(pod) for pod in pods)
    status = {
        'nodes': sorted(pod['metadata']['name'] for pod in pods),
        'replicas': len(pods),
        'selector': selector,
    }
    resource = api(f'{GROUP}/{VERSION}', KIND)
    live = read(resource, namespace, name)
    if live is None:
        return
    old = live.get('status') or {}
    status['conditions'] = [condition(old, ready == size == len(pods), f'{ready} of {size} Pods are ready', owner)]
    if any(old.get(key) != value for key, value in status.items()):
        resource.status.patch(
            body={'status': status}, name=name, namespace=namespace, content_type='application/merge-patch+json')


def condition(old, is_true, message, owner):
    """The condition Ready; its time is that of its last change."""
    status = 'True' if is_true else 'False'
    known = next((it for it in old.get('conditions') or [] if it['type'] == 'Ready'), None)
    now = datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
    return {
        'type': 'Ready',
        'status': status,
        'reason': 'Settled' if is_true else 'Progressing',
        'message': message,
        'observedGeneration': owner['metadata']['generation'],
        'lastTransitionTime': known['lastTransitionTime'] if known and known['status'] == status else now,
    }


def is_active(pod):
    return 'deletionTimestamp' not in pod['metadata'] and pod.get('status', {}).get('phase') not in ('Failed', 'Succeeded')


def is_ready(pod):
    conditions = pod.get('status', {}).get('conditions') or []
    return any(it['type'] == 'Ready' and it['status'] == 'True' for it in conditions)


def deployment(owner):
    container = {
        'name': 'memcached',
        'image': owner['spec'].get('image') or DEFAULT_IMAGE,
        'ports': [{'name': 'memcached', 'containerPort': PORT}],
        'readinessProbe': {'tcpSocket': {'port': PORT}, 'initialDelaySeconds': 1, 'periodSeconds': 2},
    }
    return {
        'apiVersion': 'apps/v1',
        'kind': 'Deployment',
        'metadata': {'name': owner['metadata']['name'], 'labels': labels(owner)},
        'spec': {
            'replicas': owner['spec']['size'],
            'selector': {'matchLabels': labels(owner)},
            'template': {'metadata': {'labels': labels(owner)}, 'spec': {'containers': [container]}},
        },
    }


def service(owner):
    """Headless: a client of memcached spreads its keys over all nodes, so it has to see each of them."""
    return {
        'apiVersion': 'v1',
        'kind': 'Service',
        'metadata': {'name': owner['metadata']['name'], 'labels': labels(owner)},
        'spec': {
            'clusterIP': 'None',
            'selector': labels(owner),
            'ports': [{'name': 'memcached', 'port': PORT}],
        },
    }


def labels(owner):
    return {NAME_LABEL: 'memcached', OWNER_LABEL: owner['metadata']['name']}


def owner_of(meta):
    """The name of the resource that owns an object."""
    references = meta.get('ownerReferences') or []
    ours = (it for it in references if it['kind'] == KIND and it['apiVersion'].startswith(f'{GROUP}/'))
    return next((it['name'] for it in ours), None)


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
